package grade

import (
	"context"

	"github.com/fit-eval/fit/internal/memo"
	"github.com/fit-eval/fit/internal/task"
)

// Baseline remembers what the hidden tests of tasks report without the agent: on the reference
// solution, or on the base where there is none. Each is found out at most once, and only when it is
// needed. It may be shared by many goroutines.
//
// It remembers reports, never health: a grader that worked an hour ago may be broken now. To find
// out whose fault a broken grader is, it is run again without the agent's work.
type Baseline struct {
	tests memo.Table[evidence]
	texts memo.Table[string]
}

// NewBaseline returns a Baseline that knows nothing yet.
func NewBaseline() *Baseline { return &Baseline{} }

// test returns what a hidden check reports on the reference solution, or on the base where there is
// none.
func (b *Baseline) test(ctx context.Context, g *grading, check task.Check) (evidence, error) {
	return b.tests.Get(ctx, check.Name+" "+taskKey(g.Task), func() (evidence, error) {
		return g.withoutAgent(ctx, trying(check))
	})
}

// trying runs a hidden check as it is declared.
func trying(check task.Check) attempt {
	return func(ctx context.Context, s *suiteRun) (evidence, error) {
		return s.try(ctx, check, expectation{names: check.Tests})
	}
}

// attempt runs one check in an open suite.
type attempt func(context.Context, *suiteRun) (evidence, error)

// withoutAgent runs a check on the reference solution, or on the base where there is none.
func (g *grading) withoutAgent(ctx context.Context, try attempt) (evidence, error) {
	return g.without(g.Task.HasSolution()).tryAlone(ctx, try)
}

// tryAlone runs a check in its own suite.
func (g *grading) tryAlone(ctx context.Context, try attempt) (evidence, error) {
	s, err := g.openSuite(ctx)
	if ctx.Err() != nil {
		return evidence{}, ctx.Err()
	}
	if MachineFailed(err) {
		return evidence{}, err
	}
	if err != nil {
		return evidence{cannotRun: err.Error()}, nil
	}
	defer s.close()
	return try(ctx, s)
}

// taskKey identifies a task and its content: lint may look at several versions of one task.
func taskKey(t *task.Task) string { return t.Dir + " " + t.Digest.Visible + " " + t.Digest.Hidden }

// without returns a grading of the base instead of the agent's work.
func (g *grading) without(solved bool) *grading {
	return &grading{
		Config:   g.Config,
		scratch:  g.scratch,
		again:    g.again,
		fromBase: true,
		solved:   solved,
	}
}
