package grade

import (
	"context"
	"sync"

	"github.com/fit-eval/fit/task"
)

// Baseline remembers how the graders of tasks behave without the agent: the hook on the untouched
// base, and the hidden tests on the reference solution, or on the base where there is none. Each is
// found out at most once, and only when it is needed. It may be shared by many goroutines.
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

// hookBehaviour is what the hook does on the base.
type hookBehaviour struct {
	// broken says why it does not do its work there: it dies, or does not report a declared check.
	broken string
	silent bool
}

// hook runs the hook on the base.
func (b *Baseline) hook(ctx context.Context, g *grading) (hookBehaviour, error) {
	if g.fromBase {
		// This is the run on the base: there is nothing to compare with.
		return hookBehaviour{broken: "it is the base"}, nil
	}
	value, err := b.once(ctx, "hook "+taskKey(g.Task), func() (any, error) {
		onBase := g.without(false)
		found, err := onBase.runHook(ctx)
		_, missing := settle(found.rows, g.Task.Settings.Checks)
		behaviour := hookBehaviour{broken: found.health.broken, silent: len(found.rows) == 0}
		if behaviour.broken == "" && len(missing) > 0 {
			behaviour.broken = "it does not report " + missing[0]
		}
		return behaviour, err
	})
	behaviour, _ := value.(hookBehaviour)
	return behaviour, err
}

// test runs a hidden check on the reference solution, or on the base where there is none.
func (b *Baseline) test(ctx context.Context, g *grading, check task.Check) (evidence, error) {
	return b.evidence(ctx, g, "test "+check.Name, func(s *suiteRun) (evidence, error) {
		return s.try(ctx, check, expectation{names: check.Tests})
	})
}

// command runs a command to verify on the reference solution, or on the base where there is none.
func (b *Baseline) command(ctx context.Context, g *grading, command Command) (evidence, error) {
	return b.evidence(ctx, g, "command "+command.Name,
		func(s *suiteRun) (evidence, error) { return s.tryVerify(ctx, command) })
}

// evidence runs something on a copy of its own and only tells what happened.
func (b *Baseline) evidence(ctx context.Context, g *grading, what string,
	try func(*suiteRun) (evidence, error)) (evidence, error) {
	value, err := b.once(ctx, what+" "+taskKey(g.Task), func() (any, error) {
		s, err := g.without(g.Task.Solution != "").openSuite(ctx)
		if ctx.Err() != nil {
			return evidence{}, ctx.Err()
		}
		if err != nil {
			return evidence{unfit: err.Error()}, nil
		}
		defer s.close()
		return try(s)
	})
	found, _ := value.(evidence)
	return found, err
}

// taskKey tells tasks apart, and contents of the same task: lint may look at several versions of
// one.
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

// once gets an answer from whoever asked first. A cancelled search is not remembered: the next one
// who asks searches again.
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
