package report

import (
	"cmp"
	"slices"

	"github.com/fit-eval/fit/ledger"
)

// Attempt identifies an attempt among those of several experiments.
type Attempt struct {
	Experiment string
	ledger.Key
}

// AttemptOf returns the attempt that a record is about.
func AttemptOf(r *ledger.Record) Attempt { return Attempt{r.Experiment, r.Key()} }

// Finding is what an audit found in the files of an attempt.
type Finding struct {
	// Open counts critical signs of cheating that nobody has cleared. They disqualify the run.
	Open int
	// Problem says why the files could not be examined; empty: they were.
	Problem string
}

// audited puts what an audit found into the verdicts: a disqualified run has failed with a score of
// 0, and one that nobody can examine is missing data.
func audited(records []ledger.Record, findings map[Attempt]Finding) []ledger.Record {
	if len(findings) == 0 {
		return records
	}
	records = slices.Clone(records)
	for i := range records {
		switch r, found := &records[i], findings[AttemptOf(&records[i])]; {
		case found.Problem != "":
			r.Verdict, r.ErrorClass = ledger.Error, cmp.Or(r.ErrorClass, reasonUnreadable)
		case found.Open > 0:
			r.Verdict = ledger.Fail
			if r.Score != nil {
				r.Score = new(0.0)
			}
		}
	}
	return records
}

// examine counts what an audit found in the runs of a group.
func (g *Group) examine(in Input) {
	g.unexamined = in.Unexamined
	for i := range g.records {
		found := in.Findings[AttemptOf(&g.records[i])]
		if g.flags += found.Open; found.Open > 0 {
			g.Totals.Disqualified++
		}
		if found.Problem != "" {
			g.unread = append(g.unread, found.Problem)
		}
	}
}
