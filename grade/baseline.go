package grade

import (
	"context"
	"sync"

	"github.com/fit-eval/fit/task"
)

// Baseline remembers what the hidden tests of tasks report without the agent: on the reference
// solution, or on the base where there is none. Each is found out at most once, and only when it is
// needed. It may be shared by many goroutines.
//
// It remembers reports, never health: a grader that worked an hour ago may be broken now. Whoever
// must know whose fault a broken grader is runs it again without the agent's work.
type Baseline struct {
	mu      sync.Mutex
	entries map[string]*answer
}

// NewBaseline returns a Baseline that knows nothing yet.
func NewBaseline() *Baseline { return &Baseline{entries: map[string]*answer{}} }

// answer is one thing found out, or being found out by somebody.
type answer struct {
	done  chan struct{}
	value any
	err   error
}

// test returns what a hidden check reports on the reference solution, or on the base where there is
// none.
func (b *Baseline) test(ctx context.Context, g *grading, check task.Check) (evidence, error) {
	value, err := b.once(ctx, "test "+check.Name+" "+taskKey(g.Task), func() (any, error) {
		return g.withoutAgent(ctx, trying(check))
	})
	found, _ := value.(evidence)
	return found, err
}

// trying runs a hidden check as far as its declaration goes.
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

// tryAlone runs a check in a suite of its own.
func (g *grading) tryAlone(ctx context.Context, try attempt) (evidence, error) {
	s, err := g.openSuite(ctx)
	if ctx.Err() != nil {
		return evidence{}, ctx.Err()
	}
	if MachineFailed(err) {
		return evidence{}, err
	}
	if err != nil {
		return evidence{unfit: err.Error()}, nil
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
		fromBase: true,
		solved:   solved,
	}
}

// once returns the answer of the caller that asked first. A cancelled search is not remembered: the
// next caller searches again.
func (b *Baseline) once(ctx context.Context, key string, find func() (any, error)) (any, error) {
	for {
		b.mu.Lock()
		known, ok := b.entries[key]
		if !ok {
			known = &answer{done: make(chan struct{})}
			b.entries[key] = known
		}
		b.mu.Unlock()
		if !ok {
			known.value, known.err = find()
			if known.err != nil {
				b.mu.Lock()
				delete(b.entries, key)
				b.mu.Unlock()
			}
			close(known.done)
			return known.value, known.err
		}
		select {
		case <-known.done:
			if known.err == nil {
				return known.value, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}
