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
	cfg = cfg.asPlanned(a, b)
	for _, quantity := range []struct {
		into **Ratio
		of   func(*ledger.Record) (float64, bool)
	}{{&cost, paid}, {&time, agentTime}, {&turns, turnsOf}} {
		sums := []map[ledger.Cell]float64{a.byCell(quantity.of), b.byCell(quantity.of)}
		value := func(side int, r *ledger.Record) (float64, bool) {
			sum, known := sums[side][r.Cell()]
			return sum, known && sum > 0 && r.Verdict != ledger.Error
		}
		both := func(side int, r *ledger.Record) (float64, bool) { // outcomes of the runs that have the quantity
			if _, ok := value(side, r); !ok {
				return 0, false
			}
			return outcomeOf(r, MeasurePass)
		}
		pairs := pairUp(a, b, value)
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

// paid returns what an attempt cost. One that ended in an error before its model was asked cost
// nothing.
func paid(r *ledger.Record) (float64, bool) {
	switch {
	case r.CostUSD != nil:
		return *r.CostUSD, true
	case r.Verdict == ledger.Error && r.Turns == 0 && r.Tokens == nil && r.Imported == nil:
		return 0, true
	}
	return 0, false
}

// agentTime returns how long the agent of an attempt worked.
func agentTime(r *ledger.Record) (float64, bool) {
	if r.Verdict == ledger.Error {
		return float64(r.PhaseMs["agent"]), true
	}
	return float64(agentMs(r)), true
}

// turnsOf returns the turns of an attempt with a verdict.
func turnsOf(r *ledger.Record) (float64, bool) {
	if r.Verdict == ledger.Error {
		return 0, true
	}
	return float64(r.Turns), true
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
