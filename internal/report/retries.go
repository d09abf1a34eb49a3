package report

import (
	"fmt"

	"github.com/fit-eval/fit/stats"
)

// Retries compares how many runs of two arms were drawn again after the agent had begun to work.
type Retries struct {
	A int `json:"a"`
	B int `json:"b"`
	// RunsA and RunsB are the runs with a verdict.
	RunsA int `json:"runsA"`
	RunsB int `json:"runsB"`
	// P is Fisher's exact test of the two shares.
	P float64 `json:"p"`

	a, b string
}

// CompareRetries returns nil where no run was drawn again.
func CompareRetries(a, b *Group) *Retries {
	r := &Retries{
		A:     a.Totals.Retried,
		B:     b.Totals.Retried,
		RunsA: a.Totals.Runs,
		RunsB: b.Totals.Runs,
		P:     1,
		a:     a.Name,
		b:     b.Name,
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
	return fmt.Sprintf("retried after the agent had begun to work: %d of %s of %s, %d of %d of %s (Fisher's p = %.3g)",
		r.A, Count(r.RunsA, "run"), r.a, r.B, r.RunsB, r.b, r.P)
}

// warning says that the arms were drawn again unequally often; empty where they may be equal.
func (r *Retries) warning() string {
	if r == nil || r.P >= stats.DefaultAlpha {
		return ""
	}
	return "the arms were retried unequally often, so errors may have met the bad runs of one of them; a claim holds " +
		"for all outcomes of retried runs"
}
