package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// How often a worker reads the whole list of pools, besides after every reconnection. In between it
// follows changes to the bucket of the fleet, which costs the hub nothing: thousands of workers
// that request the list all the time would be most of the hub's work.
const listEvery = 30 * time.Second

// subjectPrefix begins the subjects to which the keys of the fleet's bucket are written.
const subjectPrefix = "$KV." + fleetBucket + "."

// followed is a worker's copy of the bucket of the fleet.
type followed struct {
	pools map[string]poolInfo
	drain bool
}

// followPools keeps the list of pools that this worker can run, until the context ends, the worker
// is drained and idle, or its key is refused.
func (w *worker) followPools(ctx context.Context) {
	changes := make(chan *nats.Msg, 1024) // what does not fit is in the next list
	subscription, err := w.cfg.Hub.nc.ChanSubscribe(subjectPrefix+">", changes)
	if err == nil { // else the lists remain
		defer func() { _ = subscription.Unsubscribe() }()
	}
	tick := time.NewTicker(capsEvery)
	defer tick.Stop()
	known := &followed{}
	var listAt time.Time
	connects := w.cfg.Hub.nc.Stats().Reconnects
	for {
		if again := w.cfg.Hub.nc.Stats().Reconnects; again != connects || time.Now().After(listAt) {
			if w.list(ctx, known) == nil {
				connects = again
				listAt = time.Now().Add(listEvery/2 + rand.N(listEvery))
			}
		}
		if w.take(ctx, known) || w.cfg.Hub.refused() {
			return
		}
		select {
		case message := <-changes:
			known.change(&w.about, message)
			for more := len(changes); more > 0; more-- {
				known.change(&w.about, <-changes)
			}
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// list reads the whole bucket.
func (w *worker) list(ctx context.Context, known *followed) error {
	now := followed{pools: map[string]poolInfo{}}
	err := w.cfg.Hub.each(ctx, fleetBucket, "", func(key string, value []byte) { now.set(&w.about, key, value) })
	if err == nil {
		*known = now
	}
	return err
}

// change applies one write to the bucket.
func (f *followed) change(worker *Worker, message *nats.Msg) {
	key := strings.TrimPrefix(message.Subject, subjectPrefix)
	switch message.Header.Get("KV-Operation") {
	case "DEL", "PURGE":
		delete(f.pools, key)
	default:
		f.set(worker, key, message.Data)
	}
}

func (f *followed) set(worker *Worker, key string, value []byte) {
	var p poolInfo
	switch {
	case key == drainPrefix+worker.Name: // a worker of this name that was there before had another id
		f.drain = f.drain || string(value) == worker.session()
	case strings.HasPrefix(key, poolPrefix) && json.Unmarshal(value, &p) == nil && p.key() == key && p.valid():
		if f.pools == nil {
			f.pools = map[string]poolInfo{}
		}
		f.pools[key] = p
	}
}

// take applies what is known. It reports whether the worker is drained and idle.
func (w *worker) take(ctx context.Context, known *followed) bool {
	w.setPools(ctx, slices.Collect(maps.Values(known.pools)))
	w.mu.Lock()
	defer w.mu.Unlock()
	if known.drain && !w.drained {
		w.drained = true
		w.cfg.Note("draining: finishing running cells, then leaving")
	}
	return w.drained && !w.pulling && w.busy == 0 && len(w.running) == 0
}
