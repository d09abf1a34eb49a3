package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// Totals add a group up.
type Totals struct {
	Tasks   int `json:"tasks"`
	Runs    int `json:"runs"` // with a verdict
	Skipped int `json:"skipped"`
	Planned int `json:"planned"`
	Missing int `json:"missing"` // planned runs without a verdict, errors included
	// Unverified counts the runs with an error that the agent may have forged.
	Unverified int `json:"unverifiedErrors,omitempty"`
	// Retried counts the runs with a verdict that were drawn again after an error in the middle of
	// the agent's work.
	Retried int `json:"retriedRuns,omitempty"`
	// FailedCalls counts the runs with a verdict in which the provider failed a model call.
	FailedCalls int `json:"failedCallRuns,omitempty"`
	Passed      int `json:"passed"`
	// Disqualified counts the runs that failed because they cheated.
	Disqualified int `json:"disqualified,omitempty"`
	// TasksPassing counts the tasks all of whose runs passed.
	TasksPassing int `json:"tasksPassing"`
	// CostUSD is nil where the cost of some attempt is unknown; KnownCostUSD is the sum of those
	// that are known, errors and repetitions included.
	CostUSD      *float64 `json:"costUsd"`
	KnownCostUSD float64  `json:"knownCostUsd"`
	// OriginalCostUSD is what the model calls cost when they were recorded, of runs that were
	// answered from a record.
	OriginalCostUSD  *float64         `json:"originalCostUsd,omitempty"`
	CostPerPass      *stats.Interval  `json:"costPerPass,omitempty"`
	Tokens           ledger.UsageJSON `json:"tokens"`
	MedianDurationMs int64            `json:"medianDurationMs"`
	MedianTurns      int              `json:"medianTurns"`
	Attempts         int              `json:"attempts"`
	// EstimatedCosts counts the attempts whose cost is an estimate: they were cut off before they
	// had reported all tokens.
	EstimatedCosts int `json:"estimatedCosts,omitempty"`
	// Probes are part of the costs and tokens above; only the totals of the report have them.
	Probes *Probes `json:"probes,omitempty"`

	replayed bool // some attempt was answered from records
}

// Probes are the replies that models gave before the first run, and what they cost.
type Probes struct {
	Replies int `json:"replies"`
	// CostUSD is nil where the cost of some reply is unknown.
	CostUSD      *float64         `json:"costUsd"`
	KnownCostUSD float64          `json:"knownCostUsd"`
	Tokens       ledger.UsageJSON `json:"tokens"`
}

// addProbes counts probes among the costs.
func (t *Totals) addProbes(p *Probes) {
	if p == nil || p.Replies == 0 {
		return
	}
	t.Probes = p
	t.KnownCostUSD += p.KnownCostUSD
	if t.CostUSD != nil && p.CostUSD != nil {
		sum := *t.CostUSD + *p.CostUSD
		t.CostUSD = &sum
	} else {
		t.CostUSD = nil
	}
	t.Tokens.Add(&p.Tokens)
}

// measure fills in what all attempts cost, and the medians of the runs that have a verdict.
func (t *Totals) measure(attempts, counting []ledger.Record) {
	spent := ledger.SpendingOf(attempts)
	t.Attempts, t.CostUSD, t.KnownCostUSD, t.Tokens = len(attempts), spent.CostUSD, spent.KnownCostUSD, spent.Tokens
	for i := range attempts {
		if attempts[i].CostSource == session.CostEstimated {
			t.EstimatedCosts++
		}
		original := attempts[i].OriginalCostUSD
		switch {
		case attempts[i].Replay == "":
		case original == nil || t.replayed && t.OriginalCostUSD == nil: // not known
			t.replayed, t.OriginalCostUSD = true, nil
		case t.replayed:
			*t.OriginalCostUSD += *original
		default:
			t.replayed, t.OriginalCostUSD = true, new(*original)
		}
	}
	var durations, turns []float64
	for i := range counting {
		if r := &counting[i]; r.Verdict != ledger.Error {
			durations, turns = append(durations, float64(r.DurationMs)), append(turns, float64(r.Turns))
		}
	}
	t.MedianDurationMs = int64(math.Round(stats.Median(durations)))
	t.MedianTurns = int(math.Round(stats.Median(turns)))
}

// mediansText shows the medians. Another harness may not know them: then they are zero.
func (t *Totals) mediansText(imported bool) string {
	var parts []string
	if t.MedianDurationMs > 0 || !imported {
		parts = append(parts, display.Millis(t.MedianDurationMs)+" with grading")
	}
	if t.MedianTurns > 0 || !imported {
		parts = append(parts, Count(t.MedianTurns, "turn"))
	}
	if len(parts) == 0 {
		return ""
	}
	return " · median " + strings.Join(parts, ", ")
}

// add counts the runs of one more group. Each task counts once however many groups have it.
func (t *Totals) add(o Totals) {
	t.Tasks = max(t.Tasks, o.Tasks)
	t.Runs += o.Runs
	t.Planned += o.Planned
	t.Missing += o.Missing
	t.Unverified += o.Unverified
	t.Retried += o.Retried
	t.FailedCalls += o.FailedCalls
	t.Passed += o.Passed
	t.Disqualified += o.Disqualified
	t.TasksPassing += o.TasksPassing
}

// spent returns what is known about a group's cost, with a sign where it is not all.
func (t *Totals) spent() string {
	text := display.CostOver(t.CostUSD, t.KnownCostUSD)
	if t.replayed {
		text += fmt.Sprintf(" (replayed; %s when it was recorded)", display.Cost(t.OriginalCostUSD))
	}
	if t.EstimatedCosts > 0 {
		text += fmt.Sprintf(" (%d of %s estimated)", t.EstimatedCosts, Count(t.Attempts, "attempt"))
	}
	return text
}

// perPass returns what a solved run costs with its limits, or why there are none.
func (t *Totals) perPass() string {
	price := t.CostPerPass
	switch {
	case price == nil:
		return dash
	case price.Method == stats.MethodNone:
		return fmt.Sprintf("%s (%s)", display.Dollars(price.Est), strings.Join(price.Warnings, "; "))
	}
	return fmt.Sprintf("%s [%s, %s]", display.Dollars(price.Est), display.Dollars(price.Lo), display.Dollars(price.Hi))
}
