package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// leased is an attempt that this worker has. It keeps it while the hub confirms its progress.
type leased struct {
	pool    *workPool
	work    work
	message jetstream.Msg
	nonce   string
	began   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	over    chan struct{}
	keeping sync.WaitGroup
}

// lease begins to report progress on an attempt.
func (p *workPool) lease(ctx context.Context, w *work, message jetstream.Msg) *leased {
	l := &leased{
		pool:    p,
		work:    *w,
		message: message,
		nonce:   newNonce(),
		began:   p.cfg.Now(),
		over:    make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	p.mu.Lock()
	p.running[w.Run+"/"+w.name()] = l
	p.mu.Unlock()
	l.keeping.Go(l.keep)
	if begun, err := json.Marshal(event{Name: w.name(), Worker: p.about.Name}); err == nil {
		_ = p.cfg.Hub.nc.Publish(eventSubject(w.Run), begun) // who runs what is only shown
	}
	return l
}

// end gives the attempt up, or notes that it is over.
func (l *leased) end() {
	close(l.over)
	l.keeping.Wait()
	l.cancel(nil)
	l.pool.mu.Lock()
	delete(l.pool.running, l.work.Run+"/"+l.work.name())
	l.pool.mu.Unlock()
}

// keep reports progress. When the hub has not confirmed any for the time of the lease, it cancels
// the attempt, which kills its sandbox: from then on the hub may give it to another worker. The hub
// counts from when a report arrived, this worker from when it was sent, so it is never the later.
func (l *leased) keep() {
	lease := time.Duration(l.pool.info.LeaseMs) * time.Millisecond
	confirmed := time.Now()
	every := time.NewTicker(lease / 6)
	defer every.Stop()
	for {
		left := lease - time.Since(confirmed)
		if left <= 0 { // also after this process was stopped for a while
			l.cancel(errFenced)
			return
		}
		sent := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), min(left, lease/3))
		_, err := l.pool.cfg.Hub.nc.RequestWithContext(ctx, l.message.Reply(), []byte("+WPI"))
		cancel()
		if err == nil && time.Since(confirmed) < lease {
			confirmed = sent
		}
		select {
		case <-every.C:
		case <-l.over:
			return
		}
	}
}

// retry does something until it works or the lease is lost. An attempt that was cancelled is still
// reported.
func (l *leased) retry(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.ctx))
	defer cancel()
	stop := context.AfterFunc(l.ctx, func() {
		if errors.Is(context.Cause(l.ctx), errFenced) {
			cancel()
		}
	})
	defer stop()
	deadline := time.Now().Add(time.Duration(l.pool.info.LeaseMs) * time.Millisecond)
	for {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errFenced
		case time.Now().After(deadline):
			return err
		}
		pause(ctx)
	}
}
