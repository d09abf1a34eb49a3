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
	if found := notOurs(basis); found != nil || len(basis.Groups) != 2 {
		return found
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
// part, within the span of the other arm, or beside its run of the same task at one of its ends.
func (g *Group) beside(other *Group, ran span) (within, runs int) {
	counterparts := map[ledger.Cell]*ledger.Record{}
	for i := range other.records {
		r := &other.records[i]
		counterparts[ledger.Cell{TaskID: r.TaskID, RunIndex: r.RunIndex}] = r
	}
	apart := 4 * g.pace() // tasks that run at the same time make the pace faster than theirs
	var ends [2]int
	for i := range g.records {
		r := &g.records[i]
		if r.StartMs == 0 || ran.from.IsZero() {
			continue
		}
		runs++
		from, to := time.UnixMilli(r.StartMs), endOf(r)
		c := counterparts[ledger.Cell{TaskID: r.TaskID, RunIndex: r.RunIndex}]
		if from.Before(ran.to) && !to.Before(ran.from) {
			within++
		} else if c != nil && time.UnixMilli(c.StartMs).Sub(to) <= apart && from.Sub(endOf(c)) <= apart {
			at := int(indicator(from.After(ran.from)))
			ends[at] = min(ends[at]+1, mostAtAnEnd)
		}
	}
	return within + ends[0] + ends[1], runs
}

// pace is the median time from the start of a run of the arm to that of the next one.
func (g *Group) pace() time.Duration {
	var starts []int64
	for i := range g.records {
		starts = append(starts, g.records[i].StartMs)
	}
	slices.Sort(starts)
	gaps := []int64{0}
	for i := 1; i < len(starts); i++ {
		gaps = append(gaps, starts[i]-starts[i-1])
	}
	slices.Sort(gaps)
	return time.Duration(gaps[len(gaps)/2]) * time.Millisecond
}
