package query

import (
	"context"
	"encoding/json"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// Cost is what a trace cost, by lane.
type Cost struct {
	// TotalUSD is nil if the cost of any lane is unknown.
	TotalUSD *float64
	BySource []LaneCost
	// Unknown names the lanes that used tokens whose price is unknown.
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
		dst = append(jsonenc.AppendString(dst, lane.Lane), ':')
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

// Cost is what the agents cost: as they say, or by their tokens and list prices.
func (t *Trace) Cost(ctx context.Context) (*Cost, *Info, error) {
	info, err := t.walk(ctx, plan{want: informative, accounts: true})
	if err != nil {
		return nil, nil, err
	}
	c := &Cost{TotalUSD: info.Summary.TotalCostUSD, Unknown: info.unpriced}
	for _, l := range info.Lanes {
		if l.CostUSD != nil {
			c.BySource = append(c.BySource, LaneCost{l.Lane, *l.CostUSD})
		}
	}
	return c, info, nil
}
