package query

import (
	"bytes"
	"context"
	"encoding/json"
	"math"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// Cost is the cost of a trace, by lane.
type Cost struct {
	// TotalUSD is nil if the cost of any lane is unknown.
	TotalUSD *float64
	BySource []LaneCost
	// Unknown names the lanes that used tokens whose price is unknown.
	Unknown []string
	// Differences are the lanes whose agent reports another cost than the gateway saw.
	Differences []CostDifference
	// OriginalUSD is what calls that were answered from a record cost when they were recorded; nil
	// if none was.
	OriginalUSD *float64
}

// LaneCost is the cost of one lane.
type LaneCost struct {
	Lane string
	USD  float64
	// From is the source of the figure: FromWire, or "agent".
	From string
}

// Where the cost of a lane comes from.
const (
	FromWire  = "wire"  // the tokens that the model's service reported to the gateway
	fromAgent = "agent" // the agent's own word
)

// CostDifference is a lane whose agent reports a cost that differs from the gateway's by more than
// one per cent.
type CostDifference struct {
	Lane     string  `json:"lane"`
	WireUSD  float64 `json:"wireUsd"`
	AgentUSD float64 `json:"agentUsd"`
	// Percent is how far the agent's figure is above or below the gateway's.
	Percent float64 `json:"percent"`
}

// costTolerance is how far the figures of a lane may differ.
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
		dst = jsonenc.AppendNumber(dst, *c.TotalUSD)
	}
	costs, origins := []byte{}, []byte{}
	for _, lane := range c.BySource {
		costs = jsonenc.AppendNumber(appendKey(costs, lane.Lane), lane.USD)
		origins = appendField(origins, lane.Lane, lane.From)
	}
	dst = append(append(dst, `,"bySource":{`...), bytes.TrimPrefix(costs, []byte(","))...)
	dst = append(append(dst, `},"from":{`...), bytes.TrimPrefix(origins, []byte(","))...)
	dst = append(dst, '}')
	if c.OriginalUSD != nil {
		dst = jsonenc.AppendNumber(appendKey(dst, "originalCostUsd"), *c.OriginalUSD)
	}
	rest, err := json.Marshal(struct {
		Differences []CostDifference `json:"differences,omitempty"`
		Unknown     []string         `json:"unknown,omitempty"`
	}{c.Differences, c.Unknown})
	if len(rest) > len("{}") {
		dst = append(dst, ',')
	}
	return append(dst, bytes.TrimPrefix(rest, []byte("{"))...), err
}

// Cost returns the cost of the agents: by the tokens that the gateway saw, else as the agents
// report it, or by their tokens and list prices.
func (t *Trace) Cost(ctx context.Context) (*Cost, error) {
	info, err := t.walk(ctx, plan{accounts: true})
	if err != nil {
		return nil, err
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
	return c, nil
}
