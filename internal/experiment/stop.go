package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// StopRule ends an experiment of two arms as soon as they can be distinguished. The evidence is
// that of stats.LookSequential, which may be evaluated after every task without false claims;
// ordinary tests may not.
type StopRule struct {
	// Alpha is the accepted chance of a false claim: the rule stops when the evidence reaches
	// 1/Alpha.
	Alpha float64 `json:"alpha"`
}

func (s *StopRule) String() string {
	if s == nil {
		return "never"
	}
	return fmt.Sprintf("at α %g", s.Alpha)
}

// checkStop checks whether the plan can follow the rule.
func (p *Plan) checkStop() error {
	if p.Stop == nil {
		return nil
	}
	clusters := map[string]bool{}
	for _, t := range p.Tasks {
		if t.Cluster != "" && clusters[t.Cluster] {
			return fmt.Errorf("--stop-early needs independent tasks, but cluster %s contains several", t.Cluster)
		}
		clusters[t.Cluster] = true
	}
	switch {
	case !(p.Stop.Alpha > 0 && p.Stop.Alpha < 1):
		return fmt.Errorf("stopping early at a significance level of %g: want a number between 0 and 1", p.Stop.Alpha)
	case len(p.Arms) != 2:
		return fmt.Errorf("--stop-early needs exactly two arms, and there are %d", len(p.Arms))
	case p.Shard.N > 1:
		return errors.New("--stop-early cannot be combined with --shard: a shard sees only part of the results")
	case len(p.Tasks) < stats.MinClaimTasks:
		return fmt.Errorf("nothing is claimed with fewer than %d tasks, so there is nothing to stop early for; there "+
			"are %d", stats.MinClaimTasks, len(p.Tasks))
	}
	return nil
}

// taskOrder returns the order in which tasks count, fixed beforehand by the seed.
func (p *Plan) taskOrder() []string {
	ids := make([]string, len(p.Tasks))
	for i := range p.Tasks {
		ids[i] = p.Tasks[i].ID
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(draw(p.Seed, "task order", a, "", 0), draw(p.Seed, "task order", b, "", 0)),
			cmp.Compare(a, b))
	})
	return ids
}

// orderForStop sorts slots task by task.
func (p *Plan) orderForStop(slots []Slot) {
	place := map[string]int{}
	for i, id := range p.taskOrder() {
		place[id] = i
	}
	slices.SortStableFunc(slots, func(a, b Slot) int {
		return cmp.Or(place[a.TaskID]-place[b.TaskID], a.RunIndex-b.RunIndex)
	})
}

// watch evaluates an experiment while it runs. Tasks count in the order that was fixed beforehand,
// each when all its runs are over, whichever end first.
type watch struct {
	rule                StopRule
	baseline, candidate string
	runs                int
	place               map[string]int
	tasks               []watched
	complete            int // so many tasks from the first on are complete
	lookedAt            int
	pairs               []stats.Pair
}

type watched struct {
	over int // cells with their final record
	pair stats.Pair
}

// newWatch returns a watch; nil if the plan has no rule.
func newWatch(p *Plan) *watch {
	if p.Stop == nil || len(p.Arms) != 2 {
		return nil
	}
	w := &watch{
		rule:      *p.Stop,
		baseline:  p.Arms[0].Name,
		candidate: p.Arms[1].Name,
		runs:      p.Runs,
		place:     map[string]int{},
	}
	for i, id := range p.taskOrder() {
		w.place[id] = i
		w.tasks = append(w.tasks, watched{pair: stats.Pair{Task: id}})
	}
	return w
}

// mark returns what the records of a cell say about the watch.
func (w *watch) mark(cell Cell) *ledger.Sequential {
	if w == nil {
		return nil
	}
	return &ledger.Sequential{
		Alpha:     w.rule.Alpha,
		Position:  w.place[cell.TaskID],
		Tasks:     len(w.tasks),
		Runs:      w.runs,
		Baseline:  w.baseline,
		Candidate: w.candidate,
	}
}

// record notes the final record of a cell.
func (w *watch) record(cell Cell, verdict string) {
	if w == nil {
		return
	}
	t := &w.tasks[w.place[cell.TaskID]]
	t.over++
	if verdict == ledger.Error { // missing data
		return
	}
	outcome := 0.0
	if verdict == ledger.Pass {
		outcome = 1
	}
	if cell.Arm == w.baseline {
		t.pair.Baseline = append(t.pair.Baseline, outcome)
	} else {
		t.pair.Candidate = append(t.pair.Candidate, outcome)
	}
}

// tooFarAhead reports whether a cell is so far after the first incomplete task that it has to wait:
// results out of turn do not count until their turn comes, and may be wasted.
func (w *watch) tooFarAhead(cell Cell, concurrency int) bool {
	return w != nil && w.place[cell.TaskID] >= w.complete+max(stats.MinClaimTasks, 2*concurrency)
}

// decided reports whether the evidence suffices, and how much it is.
func (w *watch) decided() (evidence float64, yes bool, err error) {
	for w.complete < len(w.tasks) && w.tasks[w.complete].over >= 2*w.runs {
		w.pairs = append(w.pairs, w.tasks[w.complete].pair)
		w.complete++
	}
	if w.complete == w.lookedAt || w.complete < stats.MinClaimTasks {
		return 0, false, nil
	}
	w.lookedAt = w.complete
	comparison, err := stats.LookSequential(w.pairs, stats.CompareConfig{Level: 1 - w.rule.Alpha})
	switch {
	case errors.Is(err, stats.ErrNoData):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("look at the experiment: %w", err)
	}
	return *comparison.EValue, comparison.Decided(w.rule.Alpha), nil
}

// decide stops the experiment when the rule says so. Because the evidence is a function of the
// ledger, a later process decides the same.
func (e *engine) decide() error {
	if e.watch == nil {
		return nil
	}
	evidence, yes, err := e.watch.decided()
	yes = yes && e.watch.complete < len(e.watch.tasks) // after the last task there is nothing to stop
	if yes && e.cfg.Claimable != nil {
		yes, err = e.cfg.Claimable()
	}
	if yes {
		e.stop(
			Decided,
			fmt.Sprintf("stopped by rule: after %d of %d tasks the arms differ (e = %.3g, needed "+
				"%.3g)", e.watch.complete, len(e.watch.tasks), evidence, 1/e.watch.rule.Alpha),
		)
	}
	return err
}
