package experiment

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/fit-eval/fit/ledger"
)

// resume finds out what remains to do, and records the attempts that died with an earlier process.
func (e *engine) resume(ctx context.Context) error {
	cells := e.dir.Plan.Cells()
	e.tally.total = len(cells)
	var goOn []waiting // it may be over by now, so it comes first
	for _, cell := range cells {
		state := e.dir.cells[cell.Key()]
		if state == nil {
			e.queue = append(e.queue, waiting{cell: cell})
			continue
		}
		if attempt := e.adopted(cell, state); attempt > 0 {
			goOn = append(goOn, waiting{cell: cell, adopted: attempt})
			continue
		}
		if err := e.recordKilled(ctx, cell, state); err != nil {
			return err
		}
		if state.done && (state.verdict != ledger.Error || !e.cfg.RetryErrors) {
			e.tally.end(cell.TaskID, state.verdict)
			e.watch.record(cell, state.verdict)
			continue
		}
		if state.done {
			state.done, state.failures = false, 0
		}
		e.queue = append(e.queue, waiting{cell: cell})
	}
	e.queue = append(goOn, e.queue...)
	return e.decide()
}

// adopted returns the attempt at a cell that continues although the process that began it has died;
// 0 if there is none.
func (e *engine) adopted(cell Cell, state *cellState) int {
	executor, ok := e.cfg.Executor.(adopter)
	if !ok || state.done || len(state.open) != 1 {
		return 0
	}
	for attempt := range state.open {
		if attempt == state.attempts && executor.Adopt(cell, attempt) {
			return attempt
		}
	}
	return 0
}

// recordKilled records the attempts at a cell in flight when their process was killed.
func (e *engine) recordKilled(ctx context.Context, cell Cell, state *cellState) error {
	for _, attempt := range slices.Sorted(maps.Keys(state.open)) {
		record := ledger.Record{}
		if recoverer, ok := e.cfg.Executor.(recoverer); ok {
			record = recoverer.Recover(ctx, cell, attempt)
		}
		done, verdict := state.done, state.verdict
		e.identify(&record, cell, attempt)
		record.Verdict, record.ErrorClass, record.Final = ledger.Error, ledger.ErrorInterrupted, false
		record.ErrorMessage = "the process was killed during the attempt"
		if err := e.dir.ledger.Append(&record); err != nil {
			return err
		}
		if err := e.dir.recorded(&record); err != nil {
			return err
		}
		if done { // an existing verdict stays final
			state.done, state.verdict = done, verdict
		}
	}
	return nil
}

// identify fills in what makes a record the record of this attempt.
func (e *engine) identify(r *ledger.Record, cell Cell, attempt int) {
	r.TaskID, r.Arm, r.RunIndex, r.Seed, r.Attempt = cell.TaskID, cell.Arm, cell.RunIndex, cell.Seed, attempt
	r.FamilyRevision = e.dir.Plan.Family.Revision
	r.RunDir = cmp.Or(r.RunDir, cell.RunDir(attempt))
	if e.dir.Plan.Shard.N > 0 {
		r.Shard = e.dir.Plan.Shard.String()
	}
	if arm := e.arms[cell.Arm]; arm != nil {
		r.ArmHash = arm.Hash
		if r.Agent == "" {
			r.Agent, r.AgentVersion = arm.Agent, arm.AgentVersion
		}
		r.Model.Agent = cmp.Or(r.Model.Agent, arm.Model)
	}
	r.Sequential = e.watch.mark(cell)
	if t := e.tasks[cell.TaskID]; t != nil {
		r.Cluster, r.Tags = t.Cluster, t.Tags
		r.Digests.Visible, r.Digests.Hidden = t.Visible, t.Hidden
	}
}
