package report

import (
	"fmt"
	"time"

	"github.com/fit-eval/fit/ledger"
)

// sideBySide is the share of an arm's runs that must have run within the time of the other's.
const sideBySide = 0.8

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
		if within, runs := ran.contains(g); runs > 0 && float64(within) < sideBySide*float64(runs) {
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

// contains counts the runs of an arm whose times are known, and those of them that ran, at least in
// part, within the span.
func (s span) contains(g *Group) (within, runs int) {
	if s.from.IsZero() {
		return 0, 0
	}
	for i := range g.records {
		r := &g.records[i]
		if r.StartMs == 0 {
			continue
		}
		runs++
		if time.UnixMilli(r.StartMs).Before(s.to) && !endOf(r).Before(s.from) {
			within++
		}
	}
	return within, runs
}
