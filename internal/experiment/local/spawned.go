package local

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/fit-eval/fit/internal/sandbox"
)

// watchedSpawner remembers whether anything was started with it, and how this machine failed to.
type watchedSpawner struct {
	sandbox.ProcessSpawner
	used atomic.Bool

	mu     sync.Mutex
	failed error
}

// Spawn implements sandbox.ProcessSpawner.
func (w *watchedSpawner) Spawn(ctx context.Context, s sandbox.SpawnSpec, stdout, stderr io.Writer,
) (sandbox.SpawnResult, error) {
	w.used.Store(true)
	result, err := w.ProcessSpawner.Spawn(ctx, s, stdout, stderr)
	if errors.Is(err, sandbox.ErrBroken) && ctx.Err() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = cmp.Or(w.failed, err)
	}
	return result, err
}

// failure returns the first failure of this machine; nil if there was none.
func (w *watchedSpawner) failure() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// startedNoProcess reports whether an attempt has started no process so far: its agent is part of
// fit, has run no command, and works alone. Then the processes of the machine need not be searched,
// which would take longer than answering a question.
func (a *attempt) startedNoProcess() bool {
	return a.watched != nil && !a.watched.used.Load() && a.arm.Lead == "" && a.task.Hooks.Preflight == "" &&
		a.machine.installation(a.arm.Agent).Path == ""
}
