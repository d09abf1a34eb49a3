package report

import (
	"fmt"
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// unverified counts the runs with an attempt that ended in an error which the agent may have
// forged.
func unverified(records []ledger.Record) int {
	n := 0
	for i := range records {
		if records[i].Unverified > 0 {
			n++
		}
	}
	return n
}

// distrust takes back a claim that does not hold when every run with an error that may be forged
// counts against it: an agent must not be able to choose which of its runs are missing.
func (c *Comparison) distrust(a, b *Group, cfg CompareConfig) error {
	claim, doubtful := c.Decision.Claim, unverified(a.records)+unverified(b.records)
	if doubtful == 0 || claim != stats.Improved && claim != stats.Regressed {
		return nil
	}
	_, worst, err := c.decide(a.assuming(claim == stats.Improved), b.assuming(claim == stats.Regressed), cfg)
	if err != nil || worst.Claim == claim {
		return err
	}
	c.Decision.Sentence = fmt.Sprintf("Not proven: %s ended in errors that the agent may have forged, and if they count "+
		"as failures nothing is left of this: %s", Count(doubtful, "run"), c.Decision.Sentence)
	c.Decision.Claim = stats.NotProven
	return nil
}

// assuming returns the group with all doubtful runs passed or failed.
func (g *Group) assuming(passed bool) *Group {
	changed := *g
	changed.records = slices.Clone(g.records)
	verdict, score := ledger.Fail, 0.0
	if passed {
		verdict, score = ledger.Pass, 1
	}
	for i := range changed.records {
		if r := &changed.records[i]; r.Unverified > 0 {
			r.Verdict, r.Score = verdict, &score
		}
	}
	return &changed
}
