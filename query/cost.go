package query

import (
	"context"
	"encoding/json"
)

// Cost is what a trace cost, by lane.
type Cost struct {
	// TotalUSD is nil if nothing in the trace tells.
	TotalUSD *float64
	BySource []LaneCost
	// Unknown names the lanes that used tokens whose price nobody knows; the total does not include
	// them.
	Unknown []string
}

// LaneCost is the cost of one lane.
type LaneCost struct {
	Lane string
	USD  float64
}

// MarshalJSON writes the lanes as an object, in the order of the trace.
func (c Cost) MarshalJSON() ([]byte, error) {
	dst := []byte(`{"totalCostUsd":`)
	if c.TotalUSD == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendNumber(dst, *c.TotalUSD)
	}
	dst = append(dst, `,"bySource":{`...)
	for i, lane := range c.BySource {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, lane.Lane), ':')
		dst = appendNumber(dst, lane.USD)
	}
	dst = append(dst, '}')
	if len(c.Unknown) > 0 {
		unknown, err := json.Marshal(c.Unknown)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"unknown":`...), unknown...)
	}
	return append(dst, '}'), nil
}

// Cost adds up what the agents say they cost.
func (t *Trace) Cost(ctx context.Context) (*Cost, *Info, error) {
	info, err := t.walk(ctx, plan{want: informative})
	if err != nil {
		return nil, nil, err
	}
	c := &Cost{}
	if t.doc != nil {
		c.TotalUSD = info.Summary.TotalCostUSD
		return c, info, nil
	}
	for _, l := range info.order {
		r := info.results.lanes[l.Lane]
		switch {
		case r == nil:
		case r.unpriced:
			c.Unknown = append(c.Unknown, l.Lane)
		case r.priced:
			c.BySource = append(c.BySource, LaneCost{l.Lane, r.cost})
		}
	}
	if info.results.priced {
		total := info.results.cost
		c.TotalUSD = &total
	}
	return c, info, nil
}
