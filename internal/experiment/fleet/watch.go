package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
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
		if now.After(lookAtWorkers) {
			workers, err := e.cfg.Hub.Workers(ctx)
			if err == nil {
				e.follow(workers)
				e.count(workers)
				e.lookAtLeases(ctx, workers)
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

// lives announces that the experiment has a coordinator.
func (e *Executor) lives(ctx context.Context) {
	_ = e.cfg.Hub.put(ctx, workersBucket, livesPrefix+e.run, []byte("{}")) // it is only shown
}

// begun notes that a worker has begun an attempt, or that it found an object that is not what its
// name says.
func (e *Executor) begun(message *nats.Msg) {
	var begun event
	if len(message.Data) > maxText || json.Unmarshal(message.Data, &begun) != nil || !validName(begun.Worker) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if begun.Broken != "" {
		e.broken = begun.Broken
	} else if own := e.waiting[token(begun.Name)]; own != nil {
		own.worker = begun.Worker
	}
}

// repairEvery is how often objects that workers complain about are looked at.
const repairEvery = 5 * time.Second

// repair replaces objects of the experiment that are not what their names say.
func (e *Executor) repair(ctx context.Context) {
	e.mu.Lock()
	name := e.broken
	wait := time.Since(e.repaired) < repairEvery
	if name != "" && !wait {
		e.broken, e.repaired = "", time.Now()
	}
	e.mu.Unlock()
	if name == "" || wait || !slices.Contains(e.trees, name) {
		return
	}
	if _, err := e.publishExperiment(ctx); err != nil {
		e.cfg.Note(fmt.Sprintf("an object on the hub is not what its name says, and could not be replaced: %v", err))
	}
}

// lookAtLeases reports attempts that somebody holds and no worker says that it is making, and gives
// them to others.
func (e *Executor) lookAtLeases(ctx context.Context, workers []Worker) {
	claimed := map[string]bool{}
	for i := range workers {
		for _, r := range workers[i].Running {
			if r.Run == e.run {
				claimed[token(r.Attempt)] = true
			}
		}
	}
	e.mu.Lock()
	e.claimed = claimed
	e.mu.Unlock()
	for _, p := range e.pools {
		silent := e.silent(p)
		if len(silent) == 0 {
			continue
		}
		consumer, err := e.cfg.Hub.js.Consumer(ctx, p.poolInfo.stream(), consumerName)
		if err != nil {
			continue // tried again
		}
		held := 0
		for _, own := range silent {
			message, err := p.stream.GetLastMsgForSubject(ctx, own.work.subject())
			if err != nil || message.Sequence > consumer.CachedInfo().Delivered.Stream {
				continue // it still waits at the hub
			}
			held++
			_ = p.stream.Purge(ctx, jetstream.WithPurgeSubject(own.work.subject())) // tried again
		}
		if held > 0 {
			e.cfg.Note(fmt.Sprintf("%d attempts of %s are held, and no worker says that it is making them: they are "+
				"given to others; fit fleet status shows who is there", held, strings.Join(p.Arms, ", ")))
			e.publishFailed.Store(true) // they are published again
		}
	}
}

// silent returns the attempts of a pool that no worker has said for a while that it is making.
func (e *Executor) silent(p *pool) []*waiting {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []*waiting
	for tok, own := range e.waiting {
		_, arrived := e.arrived[tok]
		switch {
		case own.pool != p || own.stopped || arrived:
			continue
		case e.claimed[tok] || own.silentSince.IsZero():
		case time.Since(own.silentSince) > max(e.cfg.Lease, 2*workerLife):
			list = append(list, own)
		default:
			continue
		}
		own.silentSince = time.Now()
	}
	return list
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

// follow notes what workers report to run: an attempt may have begun while there was no
// coordinator.
func (e *Executor) follow(workers []Worker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range workers {
		for _, r := range workers[i].Running {
			if own := e.waiting[token(r.Attempt)]; r.Run == e.run && own != nil {
				own.worker = workers[i].Name
			}
		}
	}
}

// count finds how many attempts the fleet can run at a time, and reports pools that no worker can
// run.
func (e *Executor) count(workers []Worker) {
	slots := 0
	useful := map[string]bool{}
	for _, p := range e.pools {
		able := 0
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
			able++
			if id := w.Key + "." + w.Name; !useful[id] {
				useful[id] = true
				slots += w.Slots
			}
		}
		e.mu.Lock()
		wanted := slices.ContainsFunc(slices.Collect(maps.Values(e.waiting)),
			func(w *waiting) bool { return w.pool == p })
		e.mu.Unlock()
		if able > 0 {
			e.forget("nobody " + p.Name)
		} else if wanted {
			e.noteOnce("nobody "+p.Name, fmt.Sprintf("waiting for a worker that can run %s: %s",
				strings.Join(p.Arms, ", "), cmp.Or(strings.Join(lacks, "; "), "there is none")))
		}
	}
	e.mu.Lock()
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
