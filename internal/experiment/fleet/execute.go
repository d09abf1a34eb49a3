package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// Wait publishes an attempt and returns when its result is there, or when the context ends.
// Thousands of attempts wait here at a time.
func (e *Executor) Wait(ctx context.Context, cell experiment.Cell, attempt int) {
	if p := e.byArm[cell.Arm][cell.TaskID]; p != nil {
		e.wait(ctx, e.expect(e.workOf(p, cell, attempt), p))
	}
}

// Execute implements experiment.Executor: it publishes an attempt and returns the first record that
// comes back for it, when everything that the attempt left is in the run directory.
func (e *Executor) Execute(ctx context.Context, cell experiment.Cell, attempt int) (ledger.Record, error) {
	p := e.byArm[cell.Arm][cell.TaskID]
	if p == nil {
		return ledger.Record{}, fmt.Errorf("cell %s: no such arm or task", cell.Name())
	}
	for {
		w := e.workOf(p, cell, attempt)
		result, err := e.await(ctx, w, p)
		switch {
		case errors.Is(err, errNobody) && !e.wasRefused(w): // whoever was set aside may try again
			continue
		case err != nil:
			r := ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorInterrupted, ErrorMessage: err.Error()}
			if errors.Is(err, errNobody) {
				r.ErrorClass = ledger.ErrorInternal
			}
			return r, nil
		}
		whole := context.WithoutCancel(ctx)
		record, err := e.complete(whole, w, p, result)
		if err == nil {
			return record, nil
		}
		e.refuse(whole, w, p, result, err)
	}
}

func (e *Executor) workOf(p *pool, cell experiment.Cell, attempt int) work {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := work{
		Protocol: Protocol,
		Run:      e.run,
		Pool:     p.Name,
		Cell:     cell,
		Attempt:  attempt,
		Avoid:    e.failedOn[cell.Key()],
	}
	w = e.ticketed(w)
	w.Refused = slices.Concat(w.Refused, e.setAside(cell.Key()))
	return w
}

// ticketed adds what only the worker may know that takes the attempt.
func (e *Executor) ticketed(w work) work {
	w.Spec, w.Ticket, w.Refused = e.spec, ticketOf(e.secret, w.name()), e.refused[w.token()]
	return w
}

// complete makes the record of an attempt from its result. An error says that the result is none:
// the attempt is repeated.
func (e *Executor) complete(ctx context.Context, w work, p *pool, result arrival) (ledger.Record, error) {
	record, err := e.acceptResult(ctx, w, p, result)
	for try := 1; try < acceptTries && err != nil && mayPass(err); try++ { // it is paid for
		pause(ctx)
		record, err = e.acceptResult(ctx, w, p, result)
	}
	switch {
	case notAResult(err):
		return ledger.Record{}, err
	case err != nil:
		record = ledger.Record{
			Verdict:      ledger.Error,
			ErrorClass:   ledger.ErrorInternal,
			ErrorMessage: fmt.Sprintf("the result of worker %s: %v", result.Worker, err),
			Worker:       result.Worker,
			SignedBy:     result.key,
		}
	case record.ErrorClass == ledger.ErrorInterrupted:
		e.countInterrupted(w, &record)
	}
	e.doubt(&record)
	return record, e.countError(w.Cell.Key(), &record)
}

// doubt keeps one key from stopping an experiment that others can continue: what it says about its
// account, its machine or a budget is an error of the attempt until a second key says the same.
func (e *Executor) doubt(r *ledger.Record) {
	if r.ErrorCause == ledger.CausePressure { // only an engine knows that
		r.ErrorCause = ""
	}
	switch r.ErrorClass {
	case ledger.ErrorAuth, ledger.ErrorResources, ledger.ErrorBudget:
	default:
		return
	}
	e.mu.Lock()
	keys := e.claims[r.ErrorClass]
	if keys == nil {
		keys = map[string]bool{}
		e.claims[r.ErrorClass] = keys
	}
	keys[r.SignedBy] = true
	several := len(keys) > 1
	e.mu.Unlock()
	if !several && e.Others(r.SignedBy) {
		r.ErrorMessage = fmt.Sprintf("worker %s says (%s): %s", r.Worker, r.ErrorClass, r.ErrorMessage)
		r.ErrorClass = ledger.ErrorInternal
	}
}

// refuse reports a result that is none and gives the attempt to a worker with another key.
func (e *Executor) refuse(ctx context.Context, w work, p *pool, result arrival, why error) {
	e.cfg.Note(fmt.Sprintf("a result of %s was refused: %v; it came from worker %s with key %s", w.name(), why,
		result.Worker, result.key))
	e.mu.Lock()
	tok := w.token()
	e.refused[tok] = append(e.refused[tok], result.key)
	e.fault(result.key)
	e.held -= result.size()
	delete(e.arrived, tok)
	stream, results := p.stream, e.done
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = results.DeleteMsg(ctx, result.sequence) // else the next process refuses it again
	_ = stream.Purge(ctx, jetstream.WithPurgeSubject(w.subject()))
}

// maxInterrupted is how often an attempt at a cell may end as interrupted although nobody stopped
// it, as when a worker is ended: each costs money.
const maxInterrupted = 5

// countInterrupted counts attempts that a worker says were interrupted. Too many are an error like
// any other, whose number is bounded.
func (e *Executor) countInterrupted(w work, record *ledger.Record) {
	e.mu.Lock()
	e.stopped[w.Cell.Key()]++
	times := e.stopped[w.Cell.Key()]
	e.mu.Unlock()
	if times > maxInterrupted {
		record.ErrorClass = ledger.ErrorInternal
		record.ErrorMessage = fmt.Sprintf("%d attempts at this cell were interrupted, the last one by worker %s with "+
			"key %s", times, record.Worker, record.SignedBy)
		e.cfg.Note(w.name() + ": " + record.ErrorMessage)
	}
}

// acceptTries is how often a result is fetched: the hub may be away for a while.
const acceptTries = 20

// mayPass reports whether an error that kept a result from being fetched may be transient.
func mayPass(err error) bool {
	return !notAResult(err) && !errors.As(err, new(*fs.PathError)) && !errors.As(err, new(*os.LinkError))
}

// notAResult reports whether an error says that what a worker sent is no result.
func notAResult(err error) bool {
	return isAny(err, errContent, errRecord, errAside, jetstream.ErrMsgNotFound)
}

// isAny reports whether an error is one of several.
func isAny(err error, known ...error) bool {
	return slices.ContainsFunc(known, func(one error) bool { return errors.Is(err, one) })
}

// Adopt reports that an attempt that an earlier process published continues: its worker may be
// running it, or its result may be there.
func (e *Executor) Adopt(cell experiment.Cell, attempt int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since[token(cell.RunDir(attempt))] = e.began.Add(e.ahead)
	return true
}

// await publishes an attempt unless it is there, and waits for its result. The error says that
// there is none because the context ended.
func (e *Executor) await(ctx context.Context, w work, p *pool) (arrival, error) {
	own := e.expect(w, p)
	defer func() {
		e.mu.Lock()
		delete(e.waiting, w.token())
		e.mu.Unlock()
	}()
	e.wait(ctx, own)
	select {
	case <-own.over:
		return e.arrivalOf(own), own.err
	default:
		return e.stop(ctx, own)
	}
}

// expect notes that the result of an attempt is awaited. Earlier results are there already.
func (e *Executor) expect(w work, p *pool) *waiting {
	tok := w.token()
	e.mu.Lock()
	defer e.mu.Unlock()
	own := e.waiting[tok]
	if own == nil {
		own = &waiting{work: w, pool: p, over: make(chan struct{})}
		if e.since[tok].IsZero() {
			e.since[tok] = time.Now().Add(e.ahead)
		}
		if _, there := e.arrived[tok]; there {
			close(own.over)
		}
		e.waiting[tok] = own
	}
	return own
}

func (e *Executor) arrivalOf(own *waiting) arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.arrived[own.work.token()]
}

// wait publishes an attempt that is awaited, once, until its result is there or the context ends.
// If it cannot be published now, the watch publishes it once the hub is back.
func (e *Executor) wait(ctx context.Context, own *waiting) {
	select {
	case <-own.over:
		return
	default:
	}
	if !own.published {
		own.published = true
		if err := e.publishOne(ctx, own.work); err != nil && ctx.Err() == nil {
			e.publishFailed.Store(true)
			e.noteOnce("publish", fmt.Sprintf("the hub does not accept attempts now: %v; retrying", err))
		}
	}
	select {
	case <-own.over:
	case <-ctx.Done():
	}
}

// publishers is how many attempts are published at a time.
const publishers = 32

// publication is an attempt that one of the publishers puts into its stream.
type publication struct {
	ctx  context.Context
	work work
	err  chan error
}

// publishOne publishes an attempt on the stack of a publisher: that of the caller stays small while
// it waits for the result.
func (e *Executor) publishOne(ctx context.Context, w work) error {
	p := publication{ctx: ctx, work: w, err: make(chan error, 1)}
	select {
	case e.toPublish <- p:
		return <-p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publishAll publishes attempts until the executor ends.
func (e *Executor) publishAll(ctx context.Context) {
	for {
		select {
		case p := <-e.toPublish:
			p.err <- e.publish(p.ctx, p.work)
		case <-ctx.Done():
			return
		}
	}
}

// publish puts an attempt into the stream of its pool. An attempt that is there already stays as it
// is.
func (e *Executor) publish(ctx context.Context, w work) error {
	content, err := json.Marshal(w)
	if err != nil {
		return err
	}
	message, err := e.cfg.Hub.signed(w.subject(), content)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("%s/%s/%d", e.run, w.name(), len(w.Refused))
	_, err = e.cfg.Hub.js.PublishMsg(ctx, message, jetstream.WithMsgID(id))
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok &&
		strings.Contains(refused.Description, "maximum messages per subject") {
		return nil
	}
	return err
}

// cancelAttempt asks the worker that is making an attempt to end it.
func (e *Executor) cancelAttempt(w *work) error {
	content, err := json.Marshal(cancellation{Name: w.name(), Proof: cancelProof(w.Ticket)})
	if err != nil {
		return err
	}
	return errors.Join(e.cfg.Hub.nc.Publish(cancelSubject(e.run), content), e.cfg.Hub.nc.Flush())
}

// How long a coordinator waits for the result of an attempt that it stops.
const (
	stopUnstarted = 500 * time.Millisecond
	stopAgain     = 300 * time.Millisecond
)

// stop withdraws an attempt: no worker begins it any more, and a worker that has begun it kills its
// agent and reports the cost.
func (e *Executor) stop(ctx context.Context, own *waiting) (arrival, error) {
	cause := context.Cause(ctx)
	e.mu.Lock()
	own.stopped = true
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Lease)
	defer cancel()
	_ = own.pool.stream.Purge(ctx, jetstream.WithPurgeSubject(own.work.subject())) // the rest is stopped below
	began := time.Now()
	again := time.NewTicker(stopAgain)
	defer again.Stop()
	for {
		_ = e.cancelAttempt(&own.work) // it is sent again
		select {
		case <-own.over:
			return e.arrivalOf(own), nil
		case <-again.C:
		case <-ctx.Done():
		}
		e.mu.Lock()
		worker := own.worker
		e.mu.Unlock()
		switch {
		case worker == "" && time.Since(began) > stopUnstarted:
			return arrival{}, cause
		case ctx.Err() != nil:
			return arrival{}, fmt.Errorf("%w; its worker %s did not report", cause, worker)
		}
	}
}
