package report

import (
	"math"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Ratio compares a positive quantity over all tasks, and over the passing runs of tasks that both
// solved: an arm that gives up early looks cheap otherwise.
type Ratio struct {
	All            *Factor `json:"all,omitempty"`
	CommonlySolved *Factor `json:"commonlySolved,omitempty"`
	// Censored counts runs that ended at a limit, of which nobody knows what they would have taken.
	Censored int `json:"censored,omitempty"`
}

// Factor is the ratio of B's consumption to A's. Lo and Hi are nil where the data allow no
// interval.
type Factor struct {
	Est    float64  `json:"est"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	NTasks int      `json:"nTasks"`
}

// Ratios compares what B takes with what A takes, in dollars, time and turns; nil where nothing can
// be compared.
func Ratios(a, b *Group, cfg CompareConfig) (cost, time, turns *Ratio) {
	cfg = cfg.withDefaults()
	outcome := func(r *ledger.Record) (float64, bool) { return outcomeOf(r, MeasurePass) }
	for _, quantity := range []struct {
		into  **Ratio
		value func(*ledger.Record) (float64, bool)
	}{
		{&cost, func(r *ledger.Record) (float64, bool) {
			if r.Verdict == ledger.Error || r.CostUSD == nil {
				return 0, false
			}
			return *r.CostUSD, *r.CostUSD > 0
		}},
		{&time, func(r *ledger.Record) (float64, bool) {
			return float64(agentMs(r)), r.Verdict != ledger.Error && agentMs(r) > 0
		}},
		{&turns, func(r *ledger.Record) (float64, bool) {
			return float64(r.Turns), r.Verdict != ledger.Error && r.Turns > 0
		}},
	} {
		both := func(r *ledger.Record) (float64, bool) { // outcomes of the runs that have the quantity
			if _, ok := quantity.value(r); !ok {
				return 0, false
			}
			return outcome(r)
		}
		pairs := pairUp(a, b, quantity.value)
		ratio := &Ratio{All: factorOf(pairs, cfg)}
		for _, g := range []*Group{a, b} {
			n, _ := byCount(g.Limits)
			ratio.Censored += n
		}
		if common, err := stats.CommonlySolved(pairUp(a, b, both), pairs); err == nil {
			ratio.CommonlySolved = factorOf(common, cfg)
		}
		if ratio.All != nil {
			*quantity.into = ratio
		}
	}
	return cost, time, turns
}

// agentMs returns the time that the agent took; graders and set-up are ours.
func agentMs(r *ledger.Record) int64 {
	if ms := r.PhaseMs["agent"]; ms > 0 {
		return ms
	}
	return r.DurationMs
}

func factorOf(pairs []stats.Pair, cfg CompareConfig) *Factor {
	comparison, err := stats.CompareRatio(pairs, stats.CompareConfig{Level: 1 - cfg.Alpha, Seed: cfg.Seed})
	if err != nil {
		return nil
	}
	factor := &Factor{Est: math.Exp(comparison.Est), NTasks: comparison.Tasks}
	if interval, ok := comparison.RatioInterval(); ok {
		factor.Lo, factor.Hi = &interval.Lo, &interval.Hi
	}
	return factor
}
