package local

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/fit-eval/fit/internal/sandbox"
)

// watchedSpawner remembers whether anything was started with it.
type watchedSpawner struct {
	sandbox.ProcessSpawner
	used atomic.Bool
}

// Spawn implements sandbox.ProcessSpawner.
func (w *watchedSpawner) Spawn(ctx context.Context, s sandbox.SpawnSpec, stdout, stderr io.Writer,
) (sandbox.SpawnResult, error) {
	w.used.Store(true)
	return w.ProcessSpawner.Spawn(ctx, s, stdout, stderr)
}

// startedNoProcess reports whether an attempt has started no process so far: its agent is part of
// fit, has run no command, and works alone. Then the processes of the machine need not be searched,
// which would take longer than answering a question.
func (a *attempt) startedNoProcess() bool {
	return a.watched != nil && !a.watched.used.Load() && a.arm.Lead == "" && a.task.Hooks.Preflight == "" &&
		a.machine.installation(a.arm.Agent).Path == ""
}
