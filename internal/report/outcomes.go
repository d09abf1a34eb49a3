package report

import (
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Observation is what was seen of one run, as a number from 0 to 1.
type Observation struct {
	Value float64
	// Known is false where nothing was seen.
	Known bool
	// Judged says that the value is the verdict of a judge, which errs; other values are facts.
	Judged bool
}

// Outcome is what one planned run counts in a rate, a mean or a claim.
type Outcome struct {
	Task, Cluster string
	Observation
	// Unsure says that the run may count anything from 0 to 1, whatever was observed: it has no
	// outcome, or one that the agent may have chosen.
	Unsure bool
}

// Outcomes lists every planned run of the group once, those without a record included. observe
// looks at the i-th of its records. This is the one place that says who counts: rates, bounds,
// claims and gates are made from it.
func (g *Group) Outcomes(observe func(i int) Observation) []Outcome {
	outcomes := make([]Outcome, 0, len(g.records))
	for i := range g.records {
		r := &g.records[i]
		seen := observe(i)
		outcomes = append(outcomes, Outcome{
			Task:        r.TaskID,
			Cluster:     r.Cluster,
			Observation: seen,
			Unsure:      !seen.Known || g.redrawn(r),
		})
	}
	for i := range g.Tasks {
		for range g.Tasks[i].absent {
			outcomes = append(outcomes, Outcome{Task: g.Tasks[i].TaskID, Cluster: g.Tasks[i].Cluster, Unsure: true})
		}
	}
	return outcomes
}

// redrawn reports whether the outcome of a run was drawn again: an earlier attempt ended in an
// error after the agent had begun to work, or in one that the agent may have forged, or model calls
// failed more often than those of the other arm. Whatever ended it may have met bad draws more
// often than good ones.
func (g *Group) redrawn(r *ledger.Record) bool {
	return r.Unverified > 0 || g.redraws[r.Cell()] > 0 || g.uneven && g.failedCalls[r.Cell()] > 0
}

// failedCallsOf counts, by cell, the model calls that the provider failed in all attempts.
func failedCallsOf(attempts []ledger.Record) map[ledger.Cell]int {
	found := map[ledger.Cell]int{}
	for i := range attempts {
		if r := &attempts[i]; r.FailedCalls > 0 {
			found[r.Cell()] += r.FailedCalls
		}
	}
	return found
}

// Beside returns two groups as they count when they are compared. A call that the provider failed
// is repeated by the agent, or by another attempt, and the model's answer is drawn anew. Where
// that met both arms alike, it is noise; where it met one more often, the failures may have met its
// bad answers, and no outcome of a run with such a call is certain.
func Beside(a, b *Group) (first, second *Group) {
	if calls := CompareFailedCalls(a, b); !calls.uneven() {
		return a, b
	}
	return a.Alone(), b.Alone()
}

// Alone returns the group as it counts where no other shows what its failed model calls did: no
// outcome of a run with such a call is certain.
func (g *Group) Alone() *Group {
	alone := *g
	alone.uneven = true
	alone.Totals.Retried = alone.countRuns(alone.redrawn)
	return &alone
}

// countRuns counts the runs with a verdict of which something holds.
func (g *Group) countRuns(holds func(r *ledger.Record) bool) int {
	n := 0
	for i := range g.records {
		if r := &g.records[i]; r.Verdict != ledger.Error && holds(r) {
			n++
		}
	}
	return n
}

// redrawsOf counts, by cell, the attempts that ended in an error after the agent had begun to work,
// and those whose records are gone, which may have.
func redrawsOf(attempts []ledger.Record) map[ledger.Cell]int {
	found, gone := map[ledger.Cell]int{}, map[ledger.Cell]int{}
	for i := range attempts {
		gone[attempts[i].Cell()] = max(gone[attempts[i].Cell()], attempts[i].Attempt)
	}
	for i := range attempts {
		r := &attempts[i]
		gone[r.Cell()]--
		if r.Verdict == ledger.Error && begun(r) {
			found[r.Cell()]++
		}
	}
	for cell, n := range gone {
		if n > 0 {
			found[cell] += n
		}
	}
	return found
}

// begun reports whether the agent's model had answered, or may have: an outcome was on its way.
func begun(r *ledger.Record) bool {
	return r.Begun || r.Turns > 0 || r.Tokens != nil && r.Tokens.OutputTokens > 0
}

// Alongside adds to the outcomes of two arms the runs of tasks that only the other has: nobody
// knows what would have come out, and somebody may have chosen them by what did. It returns how
// many tasks and runs it added to each.
func Alongside(a, b []Outcome) (first, second []Outcome, added [2]UnsureRuns) {
	lacking := func(own, other []Outcome) (missing []Outcome, n UnsureRuns) {
		there, tasks := map[string]bool{}, map[string]bool{}
		for i := range own {
			there[own[i].Task] = true
		}
		for _, o := range other {
			if !there[o.Task] {
				missing = append(missing, Outcome{Task: o.Task, Cluster: o.Cluster, Unsure: true})
				tasks[o.Task] = true
			}
		}
		return missing, UnsureRuns{Unplanned: len(tasks), UnplannedRuns: len(missing)}
	}
	toA, ofA := lacking(a, b)
	toB, ofB := lacking(b, a)
	return slices.Concat(a, toA), slices.Concat(b, toB), [2]UnsureRuns{ofA, ofB}
}

// Passes lists whether every planned run passed.
func (g *Group) Passes() []Outcome { return g.measured(MeasurePass) }

// together lists the measured outcomes of two arms, with the tasks that only one of them has.
// What was on its way in one arm when the rule stopped both is in neither.
func together(a, b *Group, measure string) (first, second []Outcome, added [2]UnsureRuns) {
	return Alongside(a.sequence.counting(a.measured(measure)), b.sequence.counting(b.measured(measure)))
}

// measured lists what every planned run counts in a measure.
func (g *Group) measured(measure string) []Outcome {
	return g.Outcomes(func(i int) Observation {
		value, known := outcomeOf(&g.records[i], measure)
		return Observation{Value: value, Known: known}
	})
}

// unsureOf counts the outcomes that are not certain.
func unsureOf(outcomes []Outcome) int {
	n := 0
	for i := range outcomes {
		if outcomes[i].Unsure {
			n++
		}
	}
	return n
}

// as returns the value of an outcome: fill where it is not certain, else what was observed. Without
// fill only observations count.
func (o *Outcome) as(fill *float64) (float64, bool) {
	if fill != nil && o.Unsure {
		return *fill, true
	}
	return o.Value, o.Known
}

// meanOf returns the mean over tasks of the means of their runs. Where tasks share a cluster, they
// are not independent, and the limits are those of the clusters, whose number it returns.
func meanOf(outcomes []Outcome, fill *float64, level float64) (mean stats.Interval, clusters int, err error) {
	found := pairing{}
	for i := range outcomes {
		if value, ok := outcomes[i].as(fill); ok {
			found.add(0, outcomes[i].Task, outcomes[i].Cluster, value)
		}
	}
	byCluster := map[string]int{}
	var rates []float64
	var groups [][]float64
	for _, task := range found.sorted() {
		rate := stats.Mean(task.Baseline)
		rates = append(rates, rate)
		at, known := byCluster[task.Cluster]
		if task.Cluster == "" || !known {
			at = len(groups)
			groups = append(groups, nil)
			byCluster[task.Cluster] = at
		}
		groups[at] = append(groups[at], rate)
	}
	if len(groups) == len(rates) {
		mean, err = stats.TaskMean(rates, level)
		return mean, 0, err
	}
	mean, err = stats.ClusteredMean(groups, level)
	return mean, len(groups), err
}

// rate returns the mean of a measure over tasks, nil without any outcome, and its bounds.
func (g *Group) rate(measure string) (*stats.Interval, *Bounds, error) {
	if g.PassRate == nil {
		return nil, nil, nil
	}
	outcomes := g.measured(measure)
	mean, _, err := meanOf(outcomes, nil, stats.DefaultLevel)
	if err != nil {
		return nil, nil, err
	}
	bounds, err := boundsOf(outcomes, stats.DefaultLevel)
	return &mean, bounds, err
}

// MeanOverTasks returns the mean over tasks of what was observed, with the limits of meanOf.
func MeanOverTasks(outcomes []Outcome, level float64) (stats.Interval, error) {
	mean, _, err := meanOf(outcomes, nil, level)
	return mean, err
}

// boundsOf returns what a mean would be if every run whose outcome is not certain had the lowest,
// or the highest; nil where all are certain.
func boundsOf(outcomes []Outcome, level float64) (*Bounds, error) {
	if unsureOf(outcomes) == 0 {
		return nil, nil
	}
	lowest, highest := 0.0, 1.0
	worst, _, err := meanOf(outcomes, &lowest, level)
	if err != nil {
		return nil, err
	}
	best, _, err := meanOf(outcomes, &highest, level)
	if err != nil {
		return nil, err
	}
	return &Bounds{
		Worst: worst.Est,
		Best:  best.Est,
		Lo:    worst.Lo,
		Hi:    best.Hi,
	}, nil
}

// MeanOverRuns returns the mean over runs with an observation, nil without any, and what it would
// be for all possible outcomes of the runs whose outcome is not certain. Without an interval, the
// limits are those means.
func MeanOverRuns(outcomes []Outcome) (mean *float64, bounds *Bounds) {
	over := func(fill *float64) []float64 {
		var values []float64
		for i := range outcomes {
			if value, ok := outcomes[i].as(fill); ok {
				values = append(values, value)
			}
		}
		return values
	}
	observed := over(nil)
	if len(observed) == 0 {
		return nil, nil
	}
	if unsureOf(outcomes) > 0 {
		worst, best := stats.Mean(over(new(0.0))), stats.Mean(over(new(1.0)))
		bounds = &Bounds{
			Worst: worst,
			Best:  best,
			Lo:    worst,
			Hi:    best,
		}
	}
	return new(stats.Mean(observed)), bounds
}

// PairOutcomes collects the outcomes of two arms task by task, the baseline first. fill replaces
// those of the two that are not certain; without it only observations count.
func PairOutcomes(baseline, candidate []Outcome, fill *[2]float64) []stats.Pair {
	found := pairing{}
	for side, outcomes := range [][]Outcome{baseline, candidate} {
		var own *float64
		if fill != nil {
			own = &fill[side]
		}
		for i := range outcomes {
			if value, ok := outcomes[i].as(own); ok {
				found.add(side, outcomes[i].Task, outcomes[i].Cluster, value)
			}
		}
	}
	return found.sorted()
}
