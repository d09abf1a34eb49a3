package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// leased is an attempt that this worker has. It keeps it while the hub confirms its progress.
type leased struct {
	pool    *workPool
	work    work
	given   *pulled
	message jetstream.Msg // with the worker's lock: the hub may give the attempt again
	nonce   string
	began   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	held    context.Context // ends when the lease is lost, whatever ended the attempt before
	lose    context.CancelFunc
	over    chan struct{}
	keeping sync.WaitGroup
}

// lease begins to report progress on an attempt.
func (p *workPool) lease(ctx context.Context, w *work, given *pulled) *leased {
	l := &leased{
		pool:    p,
		work:    *w,
		given:   given,
		message: given.Msg,
		nonce:   newNonce(),
		began:   p.cfg.Now(),
		over:    make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.held, l.lose = context.WithCancel(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.running[w.Run+"/"+w.name()] = l
	p.mu.Unlock()
	l.keeping.Go(l.keep)
	if begun, err := json.Marshal(event{
		Name:   w.name(),
		Worker: p.about.Name,
		Proof:  claimProof(w.Ticket, p.cfg.Hub.public),
	}); err == nil {
		_ = p.cfg.Hub.nc.Publish(eventSubject(w.Run, p.cfg.Hub.public), begun) // who runs what is only shown
	}
	return l
}

// end releases the attempt, or notes that it is over.
func (l *leased) end() {
	close(l.over)
	l.keeping.Wait()
	l.cancel(nil)
	l.lose()
	l.pool.mu.Lock()
	delete(l.pool.running, l.work.Run+"/"+l.work.name())
	l.pool.mu.Unlock()
	l.pool.alive()
}

// alive reports that this process is not stopped: while attempts run, the watchdog must be told
// once in the shortest of their leases.
func (w *worker) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	within := time.Duration(0)
	for _, l := range w.running {
		if lease := l.lease(); within == 0 || lease < within {
			within = lease
		}
	}
	w.cfg.Watched(within + within/6) // by then it has ended them itself if it can
}

func (l *leased) lease() time.Duration { return time.Duration(l.pool.info.LeaseMs) * time.Millisecond }

// current returns the message with which the hub last delivered the attempt.
func (l *leased) current() jetstream.Msg {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.message
}

// again handles an attempt that the hub delivers to the worker that already has it, because a
// killed hub may have forgotten that. It reports whether the worker has it.
func (w *worker) again(name string, message jetstream.Msg) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.running[name]
	switch {
	case l == nil:
		return false
	case l.held.Err() != nil:
		_ = message.NakWithDelay(avoidDelay) // when its sandbox is dead
	default:
		l.message = message
	}
	return true
}

// keep reports progress. When the hub has not confirmed any for the time of the lease, it cancels
// the attempt, which kills its sandbox: from then on the hub may give it to another worker. The hub
// counts from the arrival of a report, this worker from its sending, so the worker is never later.
// The first confirmation is the attempt itself, as an answer to what asked for it.
func (l *leased) keep() {
	lease, every := l.lease(), l.lease()/6
	confirmed, next := l.given.asked, every-time.Since(l.given.asked)
	if next <= 0 { // there was nothing for a while
		confirmed = time.Now()
	}
	for {
		l.pool.alive()
		select {
		case <-time.After(min(next, lease-time.Since(confirmed))): // a lease is over then, not at the next report
		case <-l.over:
			return
		}
		next = every
		left := lease - time.Since(confirmed)
		if left <= 0 { // even after this process was stopped for a while
			l.cancel(errFenced)
			l.lose()
			return
		}
		sent := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), min(left, lease/3))
		_, err := l.pool.cfg.Hub.nc.RequestWithContext(ctx, l.current().Reply(), []byte("+WPI"))
		cancel()
		if err == nil && time.Since(confirmed) < lease {
			confirmed = sent
		}
	}
}

// retry does something until it works or the lease is lost. An attempt that was cancelled is still
// reported. A result that the hub cannot store now is kept: it is paid for.
func (l *leased) retry(do func(ctx context.Context) error) error {
	defer l.pool.kept(l, nil)
	deadline := time.Now().Add(l.lease())
	for {
		err := do(l.held)
		switch {
		case err == nil:
			return nil
		case l.held.Err() != nil:
			return errFenced
		case cannotWrite(err) && l.ctx.Err() == nil: // a worker that is to end does not wait forever
			l.pool.kept(l, err)
		case time.Now().After(deadline):
			return err
		}
		pause(l.held)
	}
}

// kept notes that the result of an attempt waits until the hub can store it; with a nil error, that
// it does not any more. The worker begins no attempts meanwhile.
func (w *worker) kept(l *leased, err error) {
	w.mu.Lock()
	first := len(w.unsent) == 0 && err != nil
	if err != nil {
		w.unsent[l] = err
	} else {
		delete(w.unsent, l)
	}
	w.mu.Unlock()
	if first {
		w.cfg.Note(fmt.Sprintf("the hub cannot store results: %v; keeping them until it can", err))
	}
}
