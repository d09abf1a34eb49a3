package report

import (
	"fmt"
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// SequentialReport describes an experiment that was evaluated while it ran, to stop as soon as it
// is decided.
type SequentialReport struct {
	Alpha float64 `json:"alpha"`
	// Looked are the tasks that count, from the first on in the order that was fixed beforehand;
	// Tasks are those that were planned.
	Looked int `json:"looked"`
	Tasks  int `json:"tasks"`
	// EValue is the highest evidence so far; nil before the first complete task.
	EValue *float64 `json:"eValue"`
	// Stopped is true when the rule ended the experiment before all tasks were done.
	Stopped bool `json:"stopped"`
}

// sequence are the complete tasks of such an experiment in their order.
type sequence struct {
	mark     ledger.Sequential
	order    []string
	evidence *float64
	stopped  bool
}

// sequenceOf finds the order and how far it got; nil if the experiment was not
// sequential. Records of several experiments have no order in common.
func sequenceOf(last []ledger.Record, redraws map[ledger.Cell]int) *sequence {
	at := slices.IndexFunc(last, func(r ledger.Record) bool { return r.Sequential != nil })
	if at < 0 || slices.ContainsFunc(last, func(r ledger.Record) bool { return r.Experiment != last[at].Experiment }) {
		return nil
	}
	s := &sequence{mark: *last[at].Sequential}
	pairs := map[int]*stats.Pair{}
	over := map[int]int{}
	unsure := 0
	for i := range last {
		r := &last[i]
		if r.Sequential == nil || !r.Final {
			continue
		}
		pair := pairs[r.Sequential.Position]
		if pair == nil {
			pair = &stats.Pair{Task: r.TaskID}
			pairs[r.Sequential.Position] = pair
		}
		over[r.Sequential.Position]++
		outcome, ok := outcomeOf(r, MeasurePass)
		if !ok || r.Unverified > 0 || redraws[r.Cell()] > 0 {
			unsure++
		}
		switch {
		case !ok:
		case r.Arm == s.mark.Baseline:
			pair.Baseline = append(pair.Baseline, outcome)
		default:
			pair.Candidate = append(pair.Candidate, outcome)
		}
	}
	var counting []stats.Pair
	for position := 0; over[position] >= 2*s.mark.Runs && s.mark.Runs > 0; position++ {
		counting = append(counting, *pairs[position])
		s.order = append(s.order, pairs[position].Task)
	}
	if comparison, err := stats.LookSequential(counting, stats.CompareConfig{Level: 1 - s.mark.Alpha}); err == nil {
		s.evidence = comparison.EValue
		// The rule does not stop on outcomes that may not be claimed: where some are not certain
		// and tasks remain, somebody else has stopped it, and the rest is missing.
		s.stopped = comparison.Decided(s.mark.Alpha) && len(s.order) < s.mark.Tasks && unsure == 0
	}
	return s
}

func (s *sequence) report() *SequentialReport {
	if s == nil {
		return nil
	}
	return &SequentialReport{
		Alpha:   s.mark.Alpha,
		Looked:  len(s.order),
		Tasks:   s.mark.Tasks,
		EValue:  s.evidence,
		Stopped: s.stopped,
	}
}

// planned returns how many runs of every task there should be. Tasks that the rule made unnecessary
// are not missing.
func (s *sequence) planned(runs map[string][]int, byTask map[string][]ledger.Record) map[string][]int {
	if s == nil || !s.stopped {
		return runs
	}
	wanted := map[string][]int{}
	for id, indices := range runs {
		if slices.Contains(s.order, id) {
			wanted[id] = indices
		} else if len(byTask[id]) > 0 {
			wanted[id] = nil
		}
	}
	return wanted
}

// counting leaves out the outcomes of tasks after those with which the rule stopped.
func (s *sequence) counting(outcomes []Outcome) []Outcome {
	if s == nil || !s.stopped {
		return outcomes
	}
	return slices.DeleteFunc(outcomes, func(o Outcome) bool { return !slices.Contains(s.order, o.Task) })
}

func (s *SequentialReport) text() string {
	text := fmt.Sprintf("sequential analysis (e-process, α = %g): ", s.Alpha)
	evidence := "no evidence yet"
	if s.EValue != nil {
		evidence = fmt.Sprintf("e = %.3g, needed %.3g", *s.EValue, 1/s.Alpha)
	}
	if s.Stopped {
		return text + fmt.Sprintf("stopped by rule after %d of %d tasks, %s", s.Looked, s.Tasks, evidence)
	}
	return text + fmt.Sprintf("%d of %d tasks are complete, %s", s.Looked, s.Tasks, evidence)
}

// test chooses the method: the usual one, or a sequential one if the runs of a side were
// evaluated while they ran.
func (p *Pair) test(a, b *Group, pairs []stats.Pair, cfg CompareConfig) (stats.Comparison, error) {
	settings := stats.CompareConfig{
		Level: 1 - cfg.Alpha,
		Seed:  cfg.Seed,
		Tests: cfg.Tests,
		Looks: p.Config.Looks,
		Among: p.Config.Among,
	}
	first, second := a.completeTasks(), b.completeTasks()
	if first == nil && second == nil {
		return stats.Compare(pairs, settings)
	}
	p.Sequential = true
	byTask := map[string]stats.Pair{}
	for _, pair := range pairs {
		byTask[pair.Task] = pair
	}
	if first == nil {
		first, second = second, nil
	}
	var counting []stats.Pair
	for position := 0; ; position++ { // the first task that is not complete ends what counts
		id, there := first[position]
		if !there || second != nil && second[position] != id {
			break
		}
		if pair, known := byTask[id]; known {
			counting = append(counting, pair)
		}
	}
	return stats.CompareSequential(counting, settings)
}

// completeTasks returns the tasks all of whose runs are over, by their place in the order that was
// fixed beforehand; nil if the experiment was not sequential.
func (g *Group) completeTasks() map[int]string {
	var complete map[int]string
	over := map[int]int{}
	for i := range g.records {
		r := &g.records[i]
		if r.Sequential == nil {
			continue
		}
		if complete == nil {
			complete = map[int]string{}
		}
		if r.Final {
			over[r.Sequential.Position]++
		}
		if over[r.Sequential.Position] >= r.Sequential.Runs {
			complete[r.Sequential.Position] = r.TaskID
		}
	}
	return complete
}
