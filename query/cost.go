package query

import (
	"context"
	"encoding/json"
	"math"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// Cost is what a trace cost, by lane.
type Cost struct {
	// TotalUSD is nil if the cost of any lane is unknown.
	TotalUSD *float64
	BySource []LaneCost
	// Unknown names the lanes that used tokens whose price is unknown.
	Unknown []string
	// Differences are the lanes whose agent says something else than the wire.
	Differences []CostDifference
	// OriginalUSD is what calls that were answered from a record cost when they were recorded; nil
	// if none was.
	OriginalUSD *float64
}

// LaneCost is the cost of one lane.
type LaneCost struct {
	Lane string
	USD  float64
	// From is where the figure comes from: FromWire, or "agent".
	From string
}

// Where the cost of a lane comes from.
const (
	FromWire  = "wire"  // the tokens that the model's service reported to the gateway
	fromAgent = "agent" // the agent's own word
)

// CostDifference is a lane whose agent reports another cost than the wire, by more than one per
// cent.
type CostDifference struct {
	Lane     string  `json:"lane"`
	WireUSD  float64 `json:"wireUsd"`
	AgentUSD float64 `json:"agentUsd"`
	// Percent is how far the agent's figure lies above that of the wire, or below it.
	Percent float64 `json:"percent"`
}

// costTolerance is how far the figures of a lane may lie apart.
const costTolerance = 0.01

func newDifference(l *laneState) (CostDifference, bool) {
	d := CostDifference{Lane: l.Lane, WireUSD: *l.CostUSD, AgentUSD: *l.word}
	d.Percent = 100 * (d.AgentUSD - d.WireUSD) / d.WireUSD
	return d, d.WireUSD > 0 && math.Abs(d.Percent) > 100*costTolerance
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
	dst = append(dst, `},"from":{`...)
	for i, lane := range c.BySource {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonenc.AppendString(dst, lane.Lane), ':')
		dst = jsonenc.AppendString(dst, lane.From)
	}
	dst = append(dst, '}')
	if c.OriginalUSD != nil {
		dst = appendNumber(append(dst, `,"originalCostUsd":`...), *c.OriginalUSD)
	}
	for _, list := range []struct {
		key   string
		value any
		empty bool
	}{
		{"differences", c.Differences, len(c.Differences) == 0},
		{"unknown", c.Unknown, len(c.Unknown) == 0},
	} {
		if list.empty {
			continue
		}
		value, err := json.Marshal(list.value)
		if err != nil {
			return nil, err
		}
		dst = append(appendKey(dst, list.key), value...)
	}
	return append(dst, '}'), nil
}

// Cost is what the agents cost: by the tokens that the gateway saw, else as they say, or by their
// tokens and list prices.
func (t *Trace) Cost(ctx context.Context) (*Cost, *Info, error) {
	info, err := t.walk(ctx, plan{want: informative, accounts: true})
	if err != nil {
		return nil, nil, err
	}
	c := &Cost{TotalUSD: info.Summary.TotalCostUSD, Unknown: info.unpriced, OriginalUSD: info.original}
	for _, l := range info.order {
		if !l.wanted || l.CostUSD == nil {
			continue
		}
		from := fromAgent
		if l.byWire {
			from = FromWire
		}
		c.BySource = append(c.BySource, LaneCost{l.Lane, *l.CostUSD, from})
		if l.byWire && l.word != nil {
			if d, differs := newDifference(l); differs {
				c.Differences = append(c.Differences, d)
			}
		}
	}
	return c, info, nil
}
