package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/ledger"
)

// How many results of a key in a row are no verdicts before it is set aside, and for how long.
const (
	maxFaults = 5
	asideFor  = 10 * time.Minute
)

// fault counts what came from a key since its last verdict and was none.
type fault struct {
	times int
	last  time.Time
}

var (
	// errAside is returned for an error of a key whose errors do not count now.
	errAside = errors.New("errors of its key do not count while workers with another key are there")
	// errNobody is returned for an attempt that no worker that is there may make.
	errNobody = errors.New("the results of every key that is there were refused, and no worker with another key " +
		"came; fit fleet key add makes one")
)

// fault notes that a key sent something that is no verdict. The caller has the lock.
func (e *Executor) fault(key string) {
	e.faults[key] = fault{e.faults[key].times + 1, time.Now()}
}

// setAside returns the keys that get no attempt at a cell while workers with another key are there:
// those that failed at it, and those that failed at everything lately. The caller has the lock.
func (e *Executor) setAside(cell ledger.Cell) []string {
	aside := slices.Clone(e.failedBy[cell])
	for key, f := range e.faults {
		if f.times >= maxFaults && time.Since(f.last) < asideFor {
			aside = append(aside, key)
		}
	}
	for key := range e.able {
		if !slices.Contains(aside, key) {
			slices.Sort(aside)
			return slices.Compact(aside)
		}
	}
	return nil
}

// countError notes the error of an attempt at a cell. It returns errAside if it is not the cell's:
// one key does not use up the errors that a cell may have.
func (e *Executor) countError(cell ledger.Cell, r *ledger.Record) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case r.Verdict != ledger.Error:
		delete(e.faults, r.SignedBy)
		return nil
	case r.ErrorClass == ledger.ErrorInterrupted: // they are counted by themselves
	case slices.Contains(e.setAside(cell), r.SignedBy):
		return fmt.Errorf("%w: %s", errAside, r.ErrorMessage)
	default:
		e.fault(r.SignedBy)
		e.failedBy[cell] = append(e.failedBy[cell], r.SignedBy)
	}
	if !slices.Contains(e.failedOn[cell], r.Worker) {
		e.failedOn[cell] = append(e.failedOn[cell], r.Worker)
	}
	return nil
}

// wasRefused reports whether results of an attempt were refused.
func (e *Executor) wasRefused(w work) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.refused[w.token()]) > 0
}

// giveUp ends an attempt for which nobody has come for a while.
func (e *Executor) giveUp(ctx context.Context, own *waiting) {
	e.mu.Lock()
	if own.nobodySince.IsZero() {
		own.nobodySince = time.Now()
	}
	_, arrived := e.arrived[own.work.token()]
	over := !arrived && !own.stopped && own.err == nil && time.Since(own.nobodySince) > e.patience
	if over {
		own.err = errNobody
	}
	e.mu.Unlock()
	if over {
		_ = own.pool.stream.Purge(ctx, jetstream.WithPurgeSubject(own.work.subject())) // else a result of it is late
		close(own.over)
	}
}
