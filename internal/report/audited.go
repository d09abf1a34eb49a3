package report

import (
	"cmp"
	"fmt"
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
	// Cheats are the critical signs of cheating that nobody has cleared, in words. They disqualify
	// the run.
	Cheats []string
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
		case len(found.Cheats) > 0:
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
		if g.flags += len(found.Cheats); len(found.Cheats) > 0 {
			g.Totals.Disqualified++
		}
		for _, what := range slices.Compact(slices.Sorted(slices.Values(found.Cheats))) {
			at := slices.IndexFunc(g.Cheats, func(c Cheat) bool { return c.What == what })
			if at < 0 {
				at, g.Cheats = len(g.Cheats), append(g.Cheats, Cheat{What: what, WayOut: reviewFlags})
			}
			g.Cheats[at].Runs++
		}
		if found.Problem != "" {
			g.unread = append(g.unread, found.Problem)
		}
	}
	slices.SortStableFunc(g.Cheats, func(a, b Cheat) int { return b.Runs - a.Runs })
}

// Cheat is one kind of cheating, and in how many runs it was found.
type Cheat struct {
	What   string `json:"what"` // such as "deleted a test"
	Runs   int    `json:"runs"`
	WayOut string `json:"wayOut"`
}

// reviewFlags is the advice for runs that were disqualified.
const reviewFlags = "look at them with fit versus audit DIRECTORY, which also clears what is not cheating"

// lines say how many runs were disqualified, for what, and what to do.
func (c *Cheat) lines() []string {
	return []string{fmt.Sprintf("%s disqualified: the agent %s", Count(c.Runs, "run"), c.What), "  " + c.WayOut}
}
