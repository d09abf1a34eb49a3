package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// addUp fills in the totals and counts the errors.
func (g *Group) addUp(attempts []ledger.Record) {
	t := &g.Totals
	t.Tasks = len(g.Tasks)
	for i := range g.Tasks {
		task := &g.Tasks[i]
		t.Runs += task.N
		t.Passed += task.C
		t.Planned += task.planned
		t.Missing += task.Missing
		if task.N > 0 && task.C == task.N && task.Missing == 0 {
			t.TasksPassing++
		}
	}
	for i := range g.records {
		if g.records[i].Unverified > 0 {
			t.Unverified++
		}
	}
	t.Retried = g.countRuns(g.redrawn)
	t.FailedCalls = g.countRuns(func(r *ledger.Record) bool { return g.failedCalls[r.Cell()] > 0 })
	t.measure(attempts, g.records)
	g.Causes = failure.Causes(g.records)
	for i := range attempts {
		if r := &attempts[i]; r.Verdict == ledger.Error {
			if g.Errors == nil {
				g.Errors = map[string]int{}
			}
			g.Errors[r.ErrorClass]++
		}
	}
}

// estimate fills in the numbers over all tasks. The task is the unit: its runs are averaged first.
func (g *Group) estimate(in Input) error {
	var means []float64
	var tallies []stats.Tally
	var scores [][]float64
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.N == 0 {
			continue
		}
		tallies = append(tallies, stats.Tally{N: t.N, C: t.C})
		if t.scores != nil {
			means, scores = append(means, *t.MeanScore), append(scores, t.scores)
		}
	}
	if len(tallies) == 0 {
		return nil
	}
	passes := g.Passes()
	g.level = in.Level
	rate, clusters, err := meanOf(passes, nil, in.Level)
	if err != nil {
		return fmt.Errorf("pass rate: %w", err)
	}
	g.PassRate, g.clusters = &rate, clusters
	if g.Bounds, err = boundsOf(passes, in.Level); err != nil {
		return fmt.Errorf("bounds of the pass rate: %w", err)
	}
	for _, k := range in.K {
		at, err := stats.OverTasks(tallies, k, in.Level, stats.PassAtK)
		if err != nil {
			return fmt.Errorf("pass@%d: %w", k, err)
		}
		g.PassAtK[strconv.Itoa(k)] = at
	}
	if err := g.estimateAtLeast(tallies, in); err != nil {
		return err
	}
	if err := g.estimateScores(means, scores, in); err != nil {
		return err
	}
	g.costPerPass(in.Level)
	return g.boundAtK(in)
}

// estimateAtLeast finds the shares of tasks of which at least k runs passed, where tasks have
// several.
func (g *Group) estimateAtLeast(tallies []stats.Tally, in Input) error {
	if !slices.ContainsFunc(tallies, func(t stats.Tally) bool { return t.N > 1 }) {
		return nil
	}
	g.AtLeastK = map[string]stats.AtK{}
	for _, k := range in.K {
		found, err := atLeast(tallies, k, in.Level)
		if err != nil {
			return err
		}
		g.AtLeastK[strconv.Itoa(k)] = found
	}
	return nil
}

// atLeast finds the share of tasks of which at least k runs passed. Tasks with fewer than k runs
// are left out: their share is unknown.
func atLeast(tallies []stats.Tally, k int, level float64) (stats.AtK, error) {
	found := stats.AtK{K: k}
	var reached []float64
	for _, tally := range tallies {
		if tally.N < k {
			found.TooFew++
			continue
		}
		reached = append(reached, indicator(tally.C >= k))
	}
	if found.Tasks = len(reached); found.Tasks == 0 {
		return found, nil
	}
	var err error
	if found.Interval, err = stats.TaskMean(reached, level); err != nil {
		return found, fmt.Errorf("at least %d: %w", k, err)
	}
	return found, nil
}

// tasksMeasured counts the tasks that have a verdict.
func (g *Group) tasksMeasured() int {
	n := 0
	for i := range g.Tasks {
		if g.Tasks[i].N > 0 {
			n++
		}
	}
	return n
}

// Records returns the attempts that count, sorted by task, run and arm.
func (g *Group) Records() []ledger.Record { return g.records }

// LowerLimit returns the least that the pass rate may be, every run whose outcome is not certain
// taken as failed, at a level that allows for looks between which the experiment was enlarged.
func (g *Group) LowerLimit() float64 {
	lowest := 0.0
	level := 1 - (1-g.level)/float64(stats.LooksFactor(1+g.looks))
	mean, _, err := meanOf(g.Passes(), &lowest, level)
	if g.PassRate == nil || err != nil {
		return 0
	}
	return mean.Lo
}

func (g *Group) estimateScores(means []float64, scores [][]float64, in Input) error {
	if len(means) == 0 {
		return nil
	}
	mean, err := stats.TaskMean(means, in.Level)
	if err != nil {
		return fmt.Errorf("mean score: %w", err)
	}
	g.MeanScore, g.ScoreAtK = &mean, map[string]stats.AtK{}
	for _, k := range in.K {
		at, err := stats.ScoreAtKOverTasks(scores, k, in.Level)
		if err != nil {
			return fmt.Errorf("score@%d: %w", k, err)
		}
		g.ScoreAtK[strconv.Itoa(k)] = at
	}
	return nil
}

// costPerPass computes the cost of a solved run over the runs with a verdict, with all attempts at
// them: what a run without one would have cost, and whether it would have passed, is not known.
func (g *Group) costPerPass(level float64) {
	if g.Totals.CostUSD == nil || g.Totals.Passed == 0 {
		return
	}
	var costs, passes []float64
	at := map[string]int{}
	for i := range g.Tasks {
		if t := &g.Tasks[i]; t.N > 0 {
			at[t.TaskID] = len(costs)
			costs, passes = append(costs, 0), append(passes, float64(t.C))
		}
	}
	spent := g.byCell(paid)
	for i := range g.records {
		if r := &g.records[i]; r.Verdict != ledger.Error {
			costs[at[r.TaskID]] += spent[r.Cell()]
		}
	}
	est := stats.Mean(costs) / stats.Mean(passes)
	interval, err := stats.RatioOfSums(costs, passes, level)
	if err != nil {
		why := "one task"
		if len(costs) > 1 {
			why = err.Error()
		}
		g.Totals.CostPerPass = &stats.Interval{
			Est:      est,
			Lo:       est,
			Hi:       est,
			Level:    level,
			Method:   stats.MethodNone,
			Warnings: []string{"no interval: " + why},
		}
		return
	}
	// equal tasks are not certainty: the price is at least as uncertain as the pass rate
	interval.Lo = min(interval.Lo, est*g.PassRate.Est/g.PassRate.Hi)
	if g.PassRate.Lo > 0 {
		interval.Hi = max(interval.Hi, est*g.PassRate.Est/g.PassRate.Lo)
	}
	g.Totals.CostPerPass = &interval
}

// warn says what a reader must know before trusting the numbers.
func (g *Group) warn(in Input, attempts []ledger.Record) {
	if g.Totals.Missing > 0 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("%d of %d runs have a verdict; the others are missing data, "+
			"not failures", g.Totals.Runs, g.Totals.Planned))
		if in.Planned != nil && len(in.Planned.Absent) > 0 {
			g.Warnings = append(g.Warnings, "not among the results: "+strings.Join(in.Planned.Absent, ", "))
		}
	}
	g.Warnings = append(g.Warnings, in.Planned.grown()...)
	miscounted, first := 0, ""
	for i := range attempts {
		if t := attempts[i].Treatment; t != nil && t.Implausible > 0 {
			miscounted, first = miscounted+1, cmp.Or(first, t.Miscounted)
		}
	}
	if miscounted > 0 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("the model's service reported implausible numbers of tokens in "+
			"%s, first: %s", Count(miscounted, "run"), first))
	}
	if runs := g.Totals.Unverified; runs > 0 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("%s ended in an error that only the agent's own process reported, "+
			"so nobody can verify it; a claim holds for all outcomes of them (see unverifiedErrors in "+
			"docs/agent-evaluations.md)", Count(runs, "run")))
	}
	for _, k := range in.K {
		half := false
		for i := range g.Tasks {
			half = half || g.Tasks[i].N > 0 && k <= g.Tasks[i].N && 2*k > g.Tasks[i].N
		}
		if half && k > 1 {
			g.alone = append(g.alone, fmt.Sprintf("pass@%d takes only a few values when k is more than half the "+
				"runs; add runs, or report a smaller k", k))
		}
	}
	g.Warnings = append(g.Warnings, g.alone...)
	interrupted := map[ledger.Cell]int{}
	isolations, networks := map[string]bool{}, map[string]bool{}
	shared, sharing := map[string]bool{}, map[string]bool{}
	for i := range attempts {
		r := &attempts[i]
		if r.ErrorClass == ledger.ErrorInterrupted {
			interrupted[r.Cell()]++
		}
		if r.Verdict != ledger.Error {
			isolations[r.Isolation], networks[r.Network] = true, true
		}
		if r.SharedProcess != "" {
			shared[r.SharedProcess], sharing[r.TaskID] = true, true
		}
	}
	if len(shared) > 0 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("the hidden tests of %s ran the agent's code in their own "+
			"process, or report where it can write (%s): for what it can do there, see docs/security.md",
			Count(len(sharing), "task"), strings.Join(slices.Sorted(maps.Keys(shared)), ", ")))
	}
	if len(interrupted) > 0 {
		g.Warnings = append(g.Warnings, "interrupted and retried: "+Count(len(interrupted), "run"))
	}
	if isolations["none"] {
		g.Warnings = append(g.Warnings, "runs were not isolated: agents could read hidden tests and other runs")
	}
	if len(isolations) > 1 {
		g.Warnings = append(g.Warnings, "runs were isolated in different ways")
	}
	if delete(networks, ""); len(networks) > 1 { // old records do not say
		g.Warnings = append(g.Warnings, "agents had different networks: "+
			strings.Join(slices.Sorted(maps.Keys(networks)), ", "))
	}
	if g.clusters > 0 {
		g.Warnings = append(g.Warnings,
			fmt.Sprintf("some tasks share a cluster: the confidence interval of the pass rate rests on %s; those "+
				"of pass@k and scores treat tasks as independent", Count(g.clusters, "cluster")))
	}
}

func ratio(c, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(c) / float64(n)
}
