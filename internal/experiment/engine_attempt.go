package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fit-eval/fit/ledger"
)

// launch notes an attempt in the journal and begins it. One that continues is there already.
func (e *engine) launch(ctx context.Context, next waiting) error {
	cell := next.cell
	state := e.dir.state(cell.Key())
	attempt, failures, unverified := next.adopted, state.failures, state.unverified
	started := e.cfg.Now().UnixMilli()
	if attempt == 0 {
		state.attempts++
		attempt = state.attempts
		err := e.dir.journal.start(start{
			Arm:      cell.Arm,
			TaskID:   cell.TaskID,
			RunIndex: cell.RunIndex,
			Attempt:  attempt,
			StartMs:  started,
			PID:      os.Getpid(),
		})
		if err != nil {
			return err
		}
	}
	e.inFlight++
	e.alone = next.alone
	ctx, cancel := context.WithCancelCause(ctx)
	under := &flight{
		cell:    cell,
		attempt: attempt,
		startMs: started,
		began:   e.cfg.Now(),
		cancel:  cancel,
	}
	e.running[cell.Key()] = under
	for _, each := range e.running {
		each.most.Store(max(each.most.Load(), int64(e.inFlight)))
	}
	began := time.Now() // durations do not follow a clock that is set
	go func() {
		defer cancel(nil)
		if executor, ok := e.cfg.Executor.(waiter); ok {
			executor.Wait(ctx, cell, attempt)
		}
		done := &finished{cell: cell}
		e.attempt(ctx, &done.record, cell, attempt, failures, started, began)
		if _, elsewhere := e.cfg.Executor.(remote); !elsewhere {
			done.record.Concurrency = int(under.most.Load())
		}
		if e.excuse(&done.record, next.alone); excused(&done.record) {
			done.record.Final = false
		}
		done.record.Unverified += unverified
		done.err = e.append(&done.record, failures)
		e.results <- done
	}()
	return nil
}

// attempt makes one attempt and completes its record.
func (e *engine) attempt(ctx context.Context, record *ledger.Record, cell Cell, attempt, failures int, startMs int64,
	began time.Time,
) {
	if err := e.execute(ctx, record, cell, attempt); err != nil {
		record.Verdict, record.ErrorClass, record.ErrorMessage = ledger.Error, ledger.ErrorInternal, e.dir.redact(err)
		record.Grade, record.Score = nil, nil
	}
	if ctx.Err() != nil && record.Verdict == ledger.Error {
		record.ErrorClass = ledger.ErrorInterrupted
	}
	e.identify(record, cell, attempt)
	record.StartMs = cmp.Or(record.StartMs, startMs)
	record.DurationMs = cmp.Or(record.DurationMs, time.Since(began).Milliseconds())
	record.EndMs = cmp.Or(record.EndMs, record.StartMs+record.DurationMs)
	record.Final = isFinal(record, failures, e.cfg.Attempts)
}

// append writes a record to the ledger. Invalid fields are left out and named; a verdict that
// depends on them becomes an error. Nothing else of the record is lost, and a faulty executor does
// not stop the experiment.
func (e *engine) append(record *ledger.Record, failures int) error {
	if err := e.dir.journal.sync(); err != nil {
		return err
	}
	err := e.dir.ledger.Append(record)
	if !errors.Is(err, ledger.ErrInvalid) {
		return err
	}
	record.Repair()
	record.Final = isFinal(record, failures, e.cfg.Attempts)
	return e.dir.ledger.Append(record)
}

// execute calls the executor and turns a panic into an error: one broken cell must not affect the
// others.
func (e *engine) execute(ctx context.Context, record *ledger.Record, cell Cell, attempt int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			*record, err = ledger.Record{}, fmt.Errorf("the executor panicked: %v", p)
		}
	}()
	*record, err = e.cfg.Executor.Execute(ctx, cell, attempt)
	return err
}

// isFinal reports whether no attempt will follow: verdicts are never repeated, nor what nobody can
// know; infrastructure errors a bounded number of times.
func isFinal(r *ledger.Record, failures, attempts int) bool {
	switch {
	case r.Verdict == ledger.Pass || r.Verdict == ledger.Fail || r.ErrorCause == ledger.CauseUnknown:
		return true
	case r.ErrorClass == ledger.ErrorInterrupted || r.ErrorClass == ledger.ErrorBudget ||
		r.ErrorClass == ledger.ErrorAuth || r.ErrorClass == ledger.ErrorResources:
		return false
	default:
		return failures+1 >= attempts
	}
}

// finish handles an attempt that is over.
func (e *engine) finish(done *finished) error {
	e.inFlight--
	e.alone = false
	if done.err != nil {
		return done.err
	}
	record := &done.record
	cancelled := e.attemptEnded(done)
	e.dir.spent.settle(record)
	state := e.dir.state(done.cell.Key())
	e.dir.note(state, record)
	e.breaker.record(record)
	if e.breaker.open != "" {
		e.stop(Broken, e.breaker.open)
	}
	switch {
	case record.Final:
		e.tally.end(done.cell.TaskID, record.Verdict)
		e.tally.doneByProcess++
		e.watch.record(done.cell, record.Verdict)
		if err := e.decide(); err != nil {
			return err
		}
	case record.ErrorClass == ledger.ErrorInterrupted && cancelled:
		state.interrupted++
		e.cancelled[done.cell.Key()] = done.cell
	case record.ErrorClass == ledger.ErrorInterrupted:
		state.interrupted++
		e.queue = append(e.queue, waiting{cell: done.cell})
	case excused(record):
		e.tally.retries++
		e.queue = append(e.queue, waiting{cell: done.cell, alone: true})
	case record.ErrorClass == ledger.ErrorBudget:
		if record.BudgetOf == ledger.BudgetArm {
			e.spentArm[done.cell.Arm] = record.ErrorMessage
		} else {
			e.stop(OverBudget, record.ErrorMessage)
		}
		e.queue = append(e.queue, waiting{cell: done.cell})
	default:
		state.failures++
		e.tally.retries++
		e.queue = append(e.queue, waiting{
			cell:      done.cell,
			notBefore: e.cfg.Now().Add(e.cfg.Backoff(record.ErrorClass, state.failures)),
		})
	}
	e.report(record)
	return nil
}
