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
// attempt; an error means that it could not even tell, and is recorded as one.
type Executor interface {
	Execute(ctx context.Context, cell Cell, attempt int) (ledger.Record, error)
}

// Recoverer is an Executor that can tell what an attempt cost whose process was killed.
type Recoverer interface {
	// Recover returns the record of an attempt that was under way when its process died. Verdict
	// and error class are filled in by the caller.
	Recover(ctx context.Context, cell Cell, attempt int) ledger.Record
}
