package report

import (
	"fmt"

	"github.com/fit-eval/fit/stats"
)

// Retries compares how many runs of two arms were drawn again, for one reason.
type Retries struct {
	A int `json:"a"`
	B int `json:"b"`
	// RunsA and RunsB are the runs with a verdict.
	RunsA int `json:"runsA"`
	RunsB int `json:"runsB"`
	// P is Fisher's exact test of the two shares.
	P float64 `json:"p"`

	a, b, what string
}

// CompareRetries returns nil where no run was drawn again after its agent had begun to work.
func CompareRetries(a, b *Group) *Retries {
	return compareShares("retried after the agent had begun to work", a, b, func(t *Totals) int { return t.Retried })
}

// CompareFailedCalls returns nil where the provider failed no model call.
func CompareFailedCalls(a, b *Group) *Retries {
	return compareShares("met by model calls that the provider failed", a, b,
		func(t *Totals) int { return t.FailedCalls })
}

func compareShares(what string, a, b *Group, count func(*Totals) int) *Retries {
	r := &Retries{
		A:     count(&a.Totals),
		B:     count(&b.Totals),
		RunsA: a.Totals.Runs,
		RunsB: b.Totals.Runs,
		P:     1,
		a:     a.Name,
		b:     b.Name,
		what:  what,
	}
	if r.A+r.B == 0 {
		return nil
	}
	if p, err := stats.FisherExact(r.B, r.RunsB, r.A, r.RunsA); err == nil {
		r.P = p
	}
	return r
}

// Text says how often the arms were drawn again; empty where none was.
func (r *Retries) Text() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s: %d of %s of %s, %d of %d of %s (Fisher's p = %.3g)", r.what, r.A, Count(r.RunsA, "run"),
		r.a, r.B, r.RunsB, r.b, r.P)
}

// unevenAt is the level at which shares count as uneven. Evenness is assumed where the test finds
// nothing, so it is stricter than a claim: at 5%, failures in 40% of one arm's bad runs beside 30%
// of all runs led to claims about equal arms in 8 of 100 experiments.
const unevenAt = 0.2

func (r *Retries) uneven() bool { return r != nil && r.P < unevenAt }

// warning says that the arms were drawn again unequally often; empty where they may be equal.
func (r *Retries) warning() string {
	if !r.uneven() {
		return ""
	}
	return fmt.Sprintf("unequal shares of the arms' runs were %s, so errors may have met the bad runs of one of them; "+
		"a claim holds for all outcomes of these runs", r.what)
}
