package fleet

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// setPools sets the current pools.
func (w *worker) setPools(ctx context.Context, infos []poolInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]bool{}
	for _, info := range infos {
		if info.Protocol != Protocol || w.about.Lacks(info.Needs) != "" || w.refuses[info.key()] != "" {
			continue
		}
		if err := w.cfg.Policy.checkPool(&info); err != nil {
			w.refuses[info.key()] = err.Error()
			continue
		}
		now[info.key()] = true
		known := w.pools[info.key()]
		if known == nil {
			known = newWorkPool(ctx, w, info)
			w.pools[info.key()] = known
		}
		known.info.Hold, known.info.Arms, known.info.By = info.Hold, info.Arms, info.By
	}
	there := map[string]bool{}
	for _, info := range infos {
		there[info.key()] = true
	}
	for key := range w.refuses {
		if !there[key] {
			delete(w.refuses, key)
		}
	}
	for key, p := range w.pools {
		if !now[key] {
			p.retire()
			delete(w.pools, key)
		}
	}
}

// ready returns the pools that attempts can be pulled from now.
func (w *worker) ready() []*workPool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drained || w.problem != "" || len(w.unsent) > 0 {
		return nil
	}
	var list []*workPool
	for _, p := range w.pools {
		if !p.info.Hold && time.Now().After(p.notBefore) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *workPool) int { return strings.Compare(a.info.key(), b.info.key()) })
	return list
}

// How long a worker waits for an attempt: of its only pool, or of one of several.
const (
	waitAlone = 2 * time.Second
	waitTurns = 200 * time.Millisecond
	waitIdle  = 100 * time.Millisecond
)

// pull takes attempts while there are free slots.
func (w *worker) pull(ctx context.Context) {
	for turn := 0; ctx.Err() == nil; turn++ {
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p, got := w.next(ctx, turn)
		if got == nil {
			<-w.slots
			continue
		}
		w.count(1)
		got.free = sync.OnceFunc(func() { w.count(-1); <-w.slots })
		w.tasks.Go(func() {
			defer got.free()
			p.attempt(ctx, got)
		})
	}
}

// pulled is an attempt as the hub gave it.
type pulled struct {
	jetstream.Msg
	asked time.Time // when it was asked for, which was before the hub gave it
	free  func()    // gives its slot to the next one
}

// count notes that an attempt was pulled, or needs no slot any more.
func (w *worker) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy += n
	w.pulling = false
}

// next waits for an attempt. Pools take turns; it does not wait long for an empty one while others
// may have something.
func (w *worker) next(ctx context.Context, turn int) (*workPool, *pulled) {
	list := w.ready()
	w.mu.Lock()
	w.pulling = len(list) > 0
	w.mu.Unlock()
	if len(list) == 0 {
		pause(ctx)
		return nil, nil
	}
	if len(list) > 1 {
		for i := range list {
			p := list[(turn+i)%len(list)]
			if got := p.fetch(ctx, 0); got != nil {
				return p, got
			}
		}
	}
	wait := waitAlone
	if len(list) > 1 {
		wait = waitTurns
	}
	p := list[turn%len(list)]
	return p, p.fetch(ctx, wait)
}

// fetch waits for an attempt; 0 only looks.
func (p *workPool) fetch(ctx context.Context, wait time.Duration) *pulled {
	if p.consumer == nil {
		consumer, err := p.cfg.Hub.js.Consumer(ctx, p.info.stream(), consumerName)
		if err != nil {
			pause(ctx)
			return nil
		}
		p.consumer = consumer
	}
	var batch jetstream.MessageBatch
	var err error
	began := time.Now()
	if wait == 0 {
		batch, err = p.consumer.FetchNoWait(1)
	} else {
		waiting, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		batch, err = p.consumer.Fetch(1, jetstream.FetchContext(waiting))
	}
	if err != nil {
		pause(ctx)
		return nil
	}
	message := <-batch.Messages() // it is closed when the context ends
	if message != nil {
		return &pulled{Msg: message, asked: began}
	}
	if batch.Error() != nil && time.Since(began) < waitIdle {
		pause(ctx) // a deleted stream answers at once
	}
	return nil
}

// pause waits a moment before something is tried again.
func pause(ctx context.Context) {
	select {
	case <-time.After(waitIdle):
	case <-ctx.Done():
	}
}
