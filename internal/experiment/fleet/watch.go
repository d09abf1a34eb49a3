package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment"
)

// How often a coordinator looks at the caps, at the workers and at its streams.
const (
	capsEvery     = 500 * time.Millisecond
	workersEvery  = time.Second
	streamsEvery  = 5 * time.Second
	thoroughEvery = 15 * time.Second
	manyWorkers   = 200 // from which on they are listed less often
)

// watch keeps the limits of the pools at the caps, keeps track of workers, and republishes what the
// hub has lost.
func (e *Executor) watch(ctx context.Context) {
	events, err := e.cfg.Hub.nc.Subscribe(eventSubject(e.run, "*"), e.begun)
	if err == nil {
		defer func() { _ = events.Unsubscribe() }()
	}
	var lookAtWorkers, lookAtStreams, lookAtAll, sayAgain time.Time
	connects := e.cfg.Hub.nc.Stats().Reconnects
	tick := time.NewTicker(capsEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		if e.cfg.Hub.refused() {
			e.noteOnce("refused", errRefused.Error()+"; then rerun the same command")
		}
		if now.After(lookAtWorkers) {
			workers, crowding, err := e.cfg.Hub.announcements(ctx)
			switch {
			case crowding != "":
				e.makeRoom(ctx, crowding)
			case err == nil:
				e.count(ctx, workers)
				e.lookAtLeases(ctx, workers)
			case errors.Is(err, jetstream.ErrStreamNotFound): // it was in the memory of a server that started again
				_ = e.cfg.Hub.ensure(ctx) // tried again
			}
			lookAtWorkers = now.Add(workersEvery * time.Duration(1+len(workers)/manyWorkers))
		}
		if now.After(sayAgain) {
			e.lives(ctx)
			sayAgain = now.Add(heartbeat)
		}
		_ = e.share(ctx) // tried again
		e.repair(ctx)
		if again := e.cfg.Hub.nc.Stats().Reconnects; again != connects || e.publishFailed.Load() ||
			now.After(lookAtStreams) {
			thorough := again != connects || e.publishFailed.Load() || now.After(lookAtAll)
			if err := e.reconcile(ctx, thorough); err == nil {
				connects = again
				if thorough {
					lookAtAll = time.Now().Add(thoroughEvery)
				}
			}
			lookAtStreams = time.Now().Add(streamsEvery)
		}
		select {
		case <-tick.C:
		case <-e.steered:
		case <-ctx.Done():
			return
		}
	}
}

// makeRoom removes the announcements of a key that crowd out those of others. Until workers
// announce themselves again, it is unknown what they are doing, so their leases are kept.
func (e *Executor) makeRoom(ctx context.Context, key string) {
	e.noteOnce("crowding "+key, fmt.Sprintf("key %s fills the list of workers: what it announces is removed; "+
		"fit fleet key revoke ends that", key))
	e.mu.Lock()
	for _, own := range e.waiting {
		own.silentSince = time.Time{}
	}
	e.mu.Unlock()
	if stream, err := e.cfg.Hub.stream(ctx, "KV_"+workersBucket); err == nil {
		_ = stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+workersBucket+"."+key+".*")) // tried again
	}
}

// lives announces that the experiment has a coordinator.
func (e *Executor) lives(ctx context.Context) {
	_ = e.cfg.Hub.put(ctx, workersBucket, livesPrefix+e.run, []byte("{}")) // it is only shown
}

// Where returns the worker that is making an attempt; empty if none has begun it.
func (e *Executor) Where(cell experiment.Cell, attempt int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if own := e.waiting[token(cell.RunDir(attempt))]; own != nil {
		return own.worker
	}
	return ""
}

// count finds how many attempts the fleet can run at a time, and reports pools that no worker can
// run.
func (e *Executor) count(ctx context.Context, workers []Worker) {
	slots := 0
	useful, all := map[string]bool{}, map[string]bool{}
	for _, p := range e.pools {
		able := map[string]bool{} // keys
		var lacks []string
		for i := range workers {
			w := &workers[i]
			why := w.Lacks(p.Needs)
			switch {
			case why == "" && w.Refuses[p.key()] != "":
				why = "its policy: " + w.Refuses[p.key()]
			case why == "" && w.Draining:
				why = "it is draining"
			case why == "" && w.Trouble != "":
				why = w.Trouble
			}
			if why != "" {
				lacks = append(lacks, w.Name+": "+why)
				continue
			}
			able[w.Key], all[w.Key] = true, true
			if id := w.Key + "." + w.Name; !useful[id] {
				useful[id] = true
				slots += w.Slots
			}
		}
		wanted, refused := e.wants(p, able)
		for _, own := range refused {
			e.noteOnce("refused "+own.work.name(), own.work.name()+" waits for a worker with another key: results of "+
				"every key that is there were refused")
			e.giveUp(ctx, own)
		}
		if len(able) > 0 {
			e.forget("nobody " + p.Name)
		} else if wanted {
			e.noteOnce("nobody "+p.Name, fmt.Sprintf("waiting for a worker that can run %s: %s",
				strings.Join(p.Arms, ", "), cmp.Or(strings.Join(lacks, "; "), "there is none")))
		}
	}
	e.mu.Lock()
	e.able = all
	before := e.places
	// some wait at the hub, so that a worker never waits for the coordinator
	e.places = max(1, 2*slots+min(slots, 8))
	changed := e.places != before
	e.mu.Unlock()
	if changed {
		select {
		case e.changed <- struct{}{}:
		default:
		}
	}
}

// wants reports whether attempts of a pool wait, and returns those that none of some keys may make.
func (e *Executor) wants(p *pool, able map[string]bool) (wanted bool, refused []*waiting) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, own := range e.waiting {
		if own.pool != p {
			continue
		}
		wanted = true
		rest := maps.Clone(able)
		for _, key := range own.work.Refused {
			delete(rest, key)
		}
		if len(able) > 0 && len(rest) == 0 {
			refused = append(refused, own)
		} else {
			own.nobodySince = time.Time{}
		}
	}
	return wanted, refused
}

// Others reports whether workers with another key can run something of the experiment.
func (e *Executor) Others(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.able)
	if e.able[key] {
		n--
	}
	return n > 0
}

// Places returns how many attempts are worth publishing now.
func (e *Executor) Places() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.places
}

// Changed receives when Places may return another number.
func (e *Executor) Changed() <-chan struct{} { return e.changed }

// maxNotes bounds the notes that are said once.
const maxNotes = 1000

func (e *Executor) noteOnce(key, text string) {
	e.mu.Lock()
	noted := e.noted[key] || len(e.noted) > maxNotes
	e.noted[key] = true
	e.mu.Unlock()
	if !noted {
		e.cfg.Note(text)
	}
}

func (e *Executor) forget(key string) {
	e.mu.Lock()
	delete(e.noted, key)
	e.mu.Unlock()
}

// reconcile makes sure that the hub has the streams and, in a thorough check, every awaited
// attempt. Lost ones are published again.
func (e *Executor) reconcile(ctx context.Context, thorough bool) error {
	lost := false
	for _, p := range e.pools {
		if _, err := e.cfg.Hub.js.Stream(ctx, p.poolInfo.stream()); errors.Is(err, jetstream.ErrStreamNotFound) {
			lost = true
		} else if err != nil {
			return err
		}
	}
	if err := e.drop(ctx); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if _, err := e.cfg.Hub.js.Stream(ctx, doneStream(e.run)); errors.Is(err, jetstream.ErrStreamNotFound) {
		lost, e.resultsLost = true, true
	} else if err != nil {
		return err
	}
	if lost {
		if err := e.restore(ctx); err != nil {
			return err
		}
	}
	if !lost && !thorough {
		return nil
	}
	e.publishFailed.Store(false)
	return e.publishMissing(ctx, lost)
}

// restore recreates the stores of the experiment.
func (e *Executor) restore(ctx context.Context) error {
	if err := e.cfg.Hub.ensure(ctx); err != nil {
		return err
	}
	if _, err := e.publishExperiment(ctx); err != nil {
		return err
	}
	if err := e.openStreams(ctx); err != nil {
		return err
	}
	if e.resultsLost {
		e.mu.Lock()
		e.read, e.resultsLost = 0, false
		e.reread()
		e.mu.Unlock()
	}
	return nil
}

// queued returns the subjects of the attempts that a pool's stream has.
func (p *pool) queued(ctx context.Context) (map[string]uint64, error) {
	info, err := p.stream.Info(ctx, jetstream.WithSubjectFilter("fit.work."+p.Run+"."+p.Name+".*"))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// publishMissing publishes the awaited attempts that the hub does not have. A worker acknowledges
// an attempt after its result is stored: what is missing now and has no result once all results up
// to now are read was lost. What has a result and is still there is withdrawn: its worker died
// before it could acknowledge it. An attempt that a worker is making is not published again unless
// the hub has lost its stream: somebody else has acknowledged it.
func (e *Executor) publishMissing(ctx context.Context, lost bool) error {
	e.mu.Lock()
	awaited := slices.Collect(maps.Values(e.waiting))
	e.mu.Unlock()
	there := map[string]bool{}
	for _, p := range e.pools {
		subjects, err := p.queued(ctx)
		if err != nil {
			return err
		}
		for subject := range subjects {
			there[subject] = true
			e.mu.Lock()
			result, known := e.arrived[subject[strings.LastIndexByte(subject, '.')+1:]]
			e.mu.Unlock()
			if known && time.Since(result.stored) > e.cfg.Lease/2 {
				if err := p.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
					return err
				}
			}
		}
	}
	missing := slices.DeleteFunc(awaited, func(own *waiting) bool { return there[own.work.subject()] })
	if len(missing) == 0 {
		return nil
	}
	if err := e.catchUp(ctx); err != nil {
		return err
	}
	for _, own := range missing {
		e.mu.Lock()
		tok := own.work.token()
		still := e.waiting[tok] == own && !own.stopped && e.arrived[tok].Name == "" && (lost || !e.claimed[tok])
		e.mu.Unlock()
		if !still {
			continue
		}
		if err := e.publish(ctx, own.work); err != nil {
			return err
		}
	}
	return nil
}
