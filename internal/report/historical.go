package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/fit-eval/fit/ledger"
)

// sideBySide is the share of an arm's runs that must have run within the time of the other's.
const sideBySide = 0.8

// mostAtAnEnd is how many runs at either end of an experiment may be outside of the other arm's
// time: of the first and the last tasks one arm ran before the other.
const mostAtAnEnd = 2

// historical says that two arms did not run side by side: what changed in between, such as the
// model behind an endpoint, or the load of the machine, cannot be told from what was changed.
func historical(basis *Basis) []string {
	if found := notOurs(basis); found != nil {
		return found
	}
	if len(basis.Groups) != 2 {
		return nil
	}
	if a, b := basis.Groups[0], basis.Groups[1]; !oneExperiment(a, b) {
		return []string{fmt.Sprintf("%s and %s are not from one plan: they did not run side by side, so anything "+
			"that changed between them confounds the comparison", a.Name, b.Name)}
	}
	for i, g := range basis.Groups {
		other := basis.Groups[1-i]
		ran := other.span()
		if within, runs := g.beside(other, ran); runs > 0 && float64(within) < sideBySide*float64(runs) {
			return []string{fmt.Sprintf("%d of %s of %s ran while %s did, %s", within, Count(runs, "run"), g.Name,
				other.Name, ran)}
		}
	}
	return nil
}

// oneExperiment reports whether two groups are from one run directory and one plan. What another
// harness has recorded has none.
func oneExperiment(a, b *Group) bool {
	return a.Provenance.Experiment == b.Provenance.Experiment && a.Directory == b.Directory &&
		a.Imported == "" && b.Imported == ""
}

// span is the time in which the runs of an arm ran.
type span struct{ from, to time.Time }

func (s span) String() string {
	return fmt.Sprintf("from %s to %s", s.from.Format(time.DateTime), s.to.Format(time.DateTime))
}

func (g *Group) span() span {
	var s span
	for i := range g.records {
		r := &g.records[i]
		if r.StartMs == 0 {
			continue
		}
		from, to := time.UnixMilli(r.StartMs).UTC(), endOf(r)
		if s.from.IsZero() || from.Before(s.from) {
			s.from = from
		}
		if to.After(s.to) {
			s.to = to
		}
	}
	return s
}

// endOf returns when a run ended: after it began, however short it was.
func endOf(r *ledger.Record) time.Time { return time.UnixMilli(max(r.StartMs+1, r.EndMs)).UTC() }

// beside counts the runs of an arm whose times are known, and those of them that ran, at least in
// part, within the span of the other arm, or were run with it at one of its ends.
func (g *Group) beside(other *Group, ran span) (within, runs int) {
	if ran.from.IsZero() {
		return 0, 0
	}
	type slot struct {
		task string
		run  int
	}
	counterparts := map[slot]*ledger.Record{}
	for i := range other.records {
		r := &other.records[i]
		counterparts[slot{r.TaskID, r.RunIndex}] = r
	}
	// Between the runs of a slot there are at most those of the other arms.
	apart := time.Duration(max(2, len(g.question.Arms))) * max(g.longest(), other.longest(), pace(g, other))
	before, after := 0, 0
	for i := range g.records {
		r := &g.records[i]
		if r.StartMs == 0 {
			continue
		}
		runs++
		from, to := time.UnixMilli(r.StartMs), endOf(r)
		c := counterparts[slot{r.TaskID, r.RunIndex}]
		switch {
		case from.Before(ran.to) && !to.Before(ran.from):
			within++
		case c == nil || c.StartMs == 0:
		case to.Before(ran.from) && time.UnixMilli(c.StartMs).Sub(to) <= apart:
			before++
		case !from.Before(ran.to) && from.Sub(endOf(c)) <= apart:
			after++
		}
	}
	return within + min(before, mostAtAnEnd) + min(after, mostAtAnEnd), runs
}

// pace is the median time from the start of a run of the arms to that of the next one, which is
// longer than short runs take.
func pace(arms ...*Group) time.Duration {
	var starts, gaps []int64
	for _, g := range arms {
		for i := range g.records {
			if g.records[i].StartMs > 0 {
				starts = append(starts, g.records[i].StartMs)
			}
		}
	}
	slices.Sort(starts)
	for i := range starts[:max(0, len(starts)-1)] {
		gaps = append(gaps, starts[i+1]-starts[i])
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return time.Duration(gaps[len(gaps)/2]) * time.Millisecond
}

// longest is the time of the arm's longest run.
func (g *Group) longest() time.Duration {
	var longest time.Duration
	for i := range g.records {
		if r := &g.records[i]; r.StartMs > 0 {
			longest = max(longest, endOf(r).Sub(time.UnixMilli(r.StartMs)))
		}
	}
	return longest
}
