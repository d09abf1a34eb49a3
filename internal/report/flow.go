package report

import (
	"fmt"
	"maps"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Flow counts what became of the planned runs of an arm, as a trial shows it.
type Flow struct {
	Planned int `json:"planned"`
	Started int `json:"started"`
	// Retried runs had another attempt after an error; Why counts these errors by class.
	Retried int            `json:"retried"`
	Why     map[string]int `json:"why,omitempty"`
	// Limited runs were stopped by a limit of turns, time, budget or output, Held ones waited at
	// the gateway because of rate limits.
	Limited int `json:"limited"`
	Held    int `json:"held"`
	// FailedCalls counts runs in which the provider failed model calls.
	FailedCalls int `json:"failedCalls"`
	Graded      int `json:"graded"`
}

// follow counts the flow of a group from all its attempts.
func (g *Group) follow(attempts []ledger.Record) {
	last := map[ledger.Cell]int{}
	for i := range g.records {
		last[g.records[i].Cell()] = g.records[i].Attempt
	}
	f := &Flow{Planned: g.Totals.Planned, Started: len(last), Graded: g.Totals.Runs}
	f.Limited, _ = byCount(g.Limits)
	retried, held := map[ledger.Cell]bool{}, map[ledger.Cell]bool{}
	for cell, n := range last {
		if n > 1 { // also where the records of earlier attempts are gone
			retried[cell] = true
		}
	}
	for i := range attempts {
		r := &attempts[i]
		if r.Attempt < last[r.Cell()] {
			if f.Why == nil {
				f.Why = map[string]int{}
			}
			f.Why[r.ErrorClass]++
		}
		if r.HeldMs > 0 {
			held[r.Cell()] = true
		}
	}
	f.Retried, f.Held, f.FailedCalls = len(retried), len(held), len(g.failedCalls)
	if g.attempts = attempts; g.Imported == "" { // nobody knows what another harness had planned
		g.Flow = f
	}
}

// Text shows the flow in one line.
func (f *Flow) Text() string {
	if f == nil {
		return ""
	}
	why := ""
	if _, parts := byCount(f.Why); parts != "" {
		why = " (" + parts + ")"
	}
	return fmt.Sprintf("%d planned → %d started → %d retried%s → %d stopped by a limit → "+
		"%d held by rate limits → %d with failed model calls → %d graded", f.Planned, f.Started, f.Retried, why,
		f.Limited, f.Held, f.FailedCalls, f.Graded)
}

// flowLines show the flow of groups, one line each.
func flowLines(groups ...*Group) []string {
	var lines []string
	for _, g := range groups {
		if text := g.Flow.Text(); text != "" {
			lines = append(lines, fmt.Sprintf("flow of %s: %s", g.Name, text))
		}
	}
	return lines
}

// FirstAttempts is the result of first attempts alone. Those that ended in errors did not pass.
type FirstAttempts struct {
	PassedA int `json:"passedA"`
	RunsA   int `json:"runsA"`
	PassedB int `json:"passedB"`
	RunsB   int `json:"runsB"`
	// ErrorsA and ErrorsB are those of the runs whose first attempt ended in an error.
	ErrorsA int `json:"errorsA,omitempty"`
	ErrorsB int `json:"errorsB,omitempty"`
	// Difference is the mean over tasks of B's pass rate less A's; nil where no task has both.
	Difference *float64 `json:"difference"`

	text string
}

// firstAttempts compares the first attempts of two groups; nil where no run was retried.
func firstAttempts(a, b *Group) *FirstAttempts {
	if a.Flow == nil || b.Flow == nil || a.Flow.Retried+b.Flow.Retried == 0 {
		return nil
	}
	found, f := pairing{}, &FirstAttempts{}
	for _, side := range []struct {
		at                   int
		group                *Group
		passed, runs, errors *int
	}{{0, a, &f.PassedA, &f.RunsA, &f.ErrorsA}, {1, b, &f.PassedB, &f.RunsB, &f.ErrorsB}} {
		for i := range side.group.attempts {
			r := &side.group.attempts[i]
			if r.Attempt != 1 {
				continue
			}
			value, known := outcomeOf(r, MeasurePass)
			if *side.runs++; !known {
				*side.errors++
			}
			*side.passed += int(value)
			found.add(side.at, r.TaskID, r.Cluster, value)
		}
	}
	var sum float64
	tasks := 0
	for _, pair := range found.sorted() {
		if len(pair.Baseline) > 0 && len(pair.Candidate) > 0 {
			sum += stats.Mean(pair.Candidate) - stats.Mean(pair.Baseline)
			tasks++
		}
	}
	parts := []string{
		fmt.Sprintf("%s %d of %d%s", a.Name, f.PassedA, f.RunsA, endedInErrors(f.ErrorsA)),
		fmt.Sprintf("%s %d of %d%s", b.Name, f.PassedB, f.RunsB, endedInErrors(f.ErrorsB)),
	}
	if tasks > 0 {
		f.Difference = new(sum / float64(tasks))
		parts = append(parts, fmt.Sprintf("difference %+.1f points", 100**f.Difference))
	}
	f.text = "first attempts only: " + strings.Join(parts, ", ")
	return f
}

func endedInErrors(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d ended in errors)", n)
}

// byCell adds up a quantity over all attempts at each cell of a group: an attempt that ended in an
// error was paid for and waited for, too. A cell of which the quantity is not known is left out.
func (g *Group) byCell(quantity func(*ledger.Record) (value float64, known bool)) map[ledger.Cell]float64 {
	sums, unknown := map[ledger.Cell]float64{}, map[ledger.Cell]bool{}
	for i := range g.attempts {
		value, known := quantity(&g.attempts[i])
		sums[g.attempts[i].Cell()] += value
		unknown[g.attempts[i].Cell()] = unknown[g.attempts[i].Cell()] || !known
	}
	maps.DeleteFunc(sums, func(cell ledger.Cell, _ float64) bool { return unknown[cell] })
	return sums
}
