package experiment

import (
	"context"

	"github.com/fit-eval/fit/ledger"
)

// Cell is one task, one arm, one repetition.
type Cell struct {
	Arm      string `json:"arm"`
	TaskID   string `json:"taskId"`
	RunIndex int    `json:"runIndex"`
	// Seed is the cell's own, derived from the plan's seed; scripted models draw from it.
	Seed uint64 `json:"seed"`
}

// Executor makes one attempt at a cell. It returns a record for everything that can happen to an
// attempt, without secrets; an error means that there is no such record, and is recorded itself.
type Executor interface {
	Execute(ctx context.Context, cell Cell, attempt int) (ledger.Record, error)
}

// recoverer is an Executor that knows what an attempt cost whose process was killed.
type recoverer interface {
	// Recover returns the record of an attempt in flight when its process died. Verdict
	// and error class are filled in by the caller.
	Recover(ctx context.Context, cell Cell, attempt int) ledger.Record
}

// adopter is an Executor whose attempts may continue when the process that began them has died.
type adopter interface {
	// Adopt reports whether an attempt in flight may continue. Execute is then called
	// for it again, and returns its record.
	Adopt(cell Cell, attempt int) bool
}

// remote is an Executor whose attempts wait for a worker.
type remote interface {
	// Where returns the worker that is making an attempt; empty if none has begun it.
	Where(cell Cell, attempt int) string
	// Steer sets how many attempts may run concurrently (0 is no limit), and whether new ones may
	// begin. Running attempts are not stopped.
	Steer(limit int, none bool)
	// Others reports whether workers with another key than that of a record could run attempts.
	Others(signedBy string) bool
}

// neighbours is an Executor whose attempts may share a loopback: a server that one of them starts
// answers the others too.
type neighbours interface {
	// ShareLoopback reports whether the attempts at a task share a loopback with others.
	ShareLoopback(taskID string) bool
}

// waiter is an Executor whose attempts wait for others, thousands of them at a time: each waits in
// Wait, which needs little memory, and Execute is called when there is something to do.
type waiter interface {
	// Wait returns when an attempt has its result, or when the context ends.
	Wait(ctx context.Context, cell Cell, attempt int)
}

// Sink stores the artefacts of attempts. Attempts are named by their directory relative to the run
// directory (Cell.RunDir).
type Sink interface {
	// AttemptDir returns the directory of this machine in which an attempt writes its artefacts,
	// and for an empty name the one that those of all attempts are in.
	AttemptDir(runDir string) string
	// Keep stores what an attempt left in its directory, which does not change any more.
	Keep(runDir string) error
}
