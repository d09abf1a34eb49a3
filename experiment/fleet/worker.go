package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/experiment/local"
	"github.com/fit-eval/fit/internal/jsonlines"
)

// WorkerConfig is what a worker works with.
type WorkerConfig struct {
	Hub *Hub
	// Name is how the worker is called; empty is the host's name.
	Name   string
	Slots  int // attempts at a time; 0 is 1
	Labels []string
	// Agents are the versions of the agents that are installed, by id, and Isolation what works.
	Agents    map[string]string
	Isolation []string
	Engines   []string // of containers, that work
	Environ   []string
	Version   string // of fit
	// Dir is where the worker keeps trees and the files of its attempts.
	Dir string
	// Executor makes the executor of an experiment.
	Executor func(ctx context.Context, job Job) (Attempts, error)
	// FreeSpace says why this machine has no room for attempts; nil: it has.
	FreeSpace func() error
	// Note tells people what happens.
	Note func(text string)
	Now  func() time.Time // nil is the system's clock
}

// Job is an experiment that a worker makes attempts of.
type Job struct {
	Prepared *experiment.Prepared
	Sink     experiment.Sink // takes the files of attempts
	Faults   []byte          // the plan of faults; empty: none
	Dir      string          // no other job of this machine has it
}

// Attempts makes the attempts of an experiment on this machine.
type Attempts interface {
	experiment.Executor
	Warm(ctx context.Context) error
	Check(ctx context.Context) error
	Probe(ctx context.Context, record func(experiment.Probe) error) error
	Close() error
}

// worker is one call of Work.
type worker struct {
	cfg     WorkerConfig
	about   Worker
	dir     string
	trees   *treeCache
	environ map[string]string
	slots   chan struct{}
	tasks   sync.WaitGroup
	jobs    atomic.Int64 // that were begun: a job never has the directory of one that is not over

	mu      sync.Mutex
	pools   map[string]*workPool
	running map[string]*leased // by run and name of the attempt
	pulling bool               // an attempt may be under way to us
	busy    int                // attempts that were pulled and are not over
	trouble string
	drained bool
}

// Work makes this process a worker until the context ends or somebody drains it. Attempts under way
// are cancelled when the context ends, and reported as interrupted.
func Work(ctx context.Context, cfg WorkerConfig) error {
	w, unlock, err := newWorker(ctx, cfg)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kv, err := cfg.Hub.bucket(ctx, fleetBucket)
	if err != nil {
		return err
	}
	_ = kv.Delete(ctx, drainPrefix+w.about.Name) // whoever drained a worker of this name got what he wanted
	if err := w.announce(ctx); err != nil {
		return fmt.Errorf("announce this worker: %w", err)
	}
	w.cfg.Note(fmt.Sprintf("worker %s: %d at a time", w.about.Name, w.about.Slots))
	w.tasks.Go(func() { w.heartbeats(ctx) })
	w.tasks.Go(func() { w.pull(ctx) })
	w.followPools(ctx)
	cancel()
	w.tasks.Wait()
	return w.leave()
}

func newWorker(ctx context.Context, cfg WorkerConfig) (*worker, func(), error) {
	cfg.Slots = max(cfg.Slots, 1)
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.FreeSpace == nil {
		cfg.FreeSpace = func() error { return nil }
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	w := &worker{
		cfg:     cfg,
		trees:   &treeCache{dir: filepath.Join(cfg.Dir, "trees")},
		environ: map[string]string{},
		slots:   make(chan struct{}, cfg.Slots),
		pools:   map[string]*workPool{},
		running: map[string]*leased{},
		about: Worker{
			Protocol:  Protocol,
			Host:      host,
			Fit:       cfg.Version,
			Slots:     cfg.Slots,
			Labels:    cfg.Labels,
			Agents:    cfg.Agents,
			Isolation: cfg.Isolation,
			Engines:   cfg.Engines,
			SinceMs:   cfg.Now().UnixMilli(),
		},
	}
	for _, variable := range cfg.Environ {
		if name, value, ok := strings.Cut(variable, "="); ok && value != "" {
			w.environ[name] = value
			if local.Sensitive(name) {
				w.about.Env = append(w.about.Env, name)
			}
		}
	}
	slices.Sort(w.about.Env)
	unlock, err := w.takeName(ctx, workerName(cfg.Name, host), cfg.Name != "")
	return w, unlock, err
}

// workerName is a name as keys may hold it.
func workerName(name, host string) string {
	if name == "" {
		name = host
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name)
}

// errTaken is returned for a name that another worker has.
var errTaken = errors.New("another worker has this name")

// takeName finds a name for the worker and locks the directory of that name. A name that somebody
// gave must be free; the host's gets a number where another worker has it.
func (w *worker) takeName(ctx context.Context, name string, given bool) (func(), error) {
	for i := 1; i <= 1000; i++ {
		w.about.Name = name
		if i > 1 {
			w.about.Name = fmt.Sprintf("%s-%d", name, i)
		}
		file, err := w.lockName(ctx)
		switch {
		case err == nil:
			return func() { _ = file.Close() }, nil
		case !errors.Is(err, errTaken):
			return nil, err
		case given:
			return nil, fmt.Errorf("another worker of the fleet is called %s; give another --name", name)
		}
	}
	return nil, errors.New("the fleet has a thousand workers of this host's name; give a --name")
}

// lockName takes the name that the worker has now, if it is free on this machine and in the fleet.
func (w *worker) lockName(ctx context.Context) (_ *os.File, err error) {
	w.dir = filepath.Join(w.cfg.Dir, "workers", w.about.Name)
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the worker's directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(w.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if err := jsonlines.Lock(file); errors.Is(err, jsonlines.ErrLocked) {
		return nil, errTaken
	} else if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, 64))
	if err != nil {
		return nil, err
	}
	if w.about.ID = string(content); !isNonce(w.about.ID) {
		w.about.ID = newNonce()
		if _, err := file.WriteAt([]byte(w.about.ID), 0); err != nil {
			return nil, fmt.Errorf("keep the worker's id: %w", err)
		}
	}
	if err := w.checkName(ctx); err != nil {
		return nil, err
	}
	// what an earlier process left belongs to attempts that are over
	if err := local.RemoveAll(filepath.Join(w.dir, "attempts")); err != nil {
		return nil, err
	}
	return file, os.MkdirAll(filepath.Join(w.dir, "empty"), 0o700)
}

// checkName makes sure that no worker of another directory or machine has the name. What an earlier
// process of this directory announced is no hindrance.
func (w *worker) checkName(ctx context.Context) error {
	kv, err := w.cfg.Hub.bucket(ctx, workersBucket)
	if err != nil {
		return err
	}
	entry, err := kv.Get(ctx, w.about.Name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var other Worker
	if json.Unmarshal(entry.Value(), &other) == nil && other.ID != w.about.ID {
		return errTaken
	}
	return nil
}

// announce puts what the worker is and does where others see it.
func (w *worker) announce(ctx context.Context) error {
	w.mu.Lock()
	about := w.about
	about.Busy, about.Trouble, about.Draining = w.busy, w.trouble, w.drained
	for _, l := range w.running {
		about.Running = append(about.Running, Running{
			Run:     l.work.Run,
			Attempt: l.work.name(),
			SinceMs: l.began.UnixMilli(),
		})
	}
	w.mu.Unlock()
	about.NowMs = w.cfg.Now().UnixMilli()
	content, err := json.Marshal(about)
	if err != nil {
		return err
	}
	kv, err := w.cfg.Hub.bucket(ctx, workersBucket)
	if err == nil {
		_, err = kv.Put(ctx, about.Name, content)
	}
	return err
}

// heartbeats announces the worker again and again, and makes the fleet's stores where a hub lost
// them.
func (w *worker) heartbeats(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		trouble := ""
		if err := w.cfg.FreeSpace(); err != nil {
			trouble = err.Error()
		}
		w.mu.Lock()
		if trouble != w.trouble && trouble != "" {
			w.cfg.Note("no further attempts for now: " + trouble)
		}
		w.trouble = trouble
		w.mu.Unlock()
		if err := w.announce(ctx); errors.Is(err, jetstream.ErrBucketNotFound) ||
			errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
			_ = w.cfg.Hub.ensure(ctx) // tried again
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// leave takes the worker off the list.
func (w *worker) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, p := range w.pools {
		p.close()
	}
	kv, err := w.cfg.Hub.bucket(ctx, workersBucket)
	if err == nil {
		_ = kv.Delete(ctx, w.about.Name) // it is forgotten soon anyway
	}
	return nil
}

// setPools takes in the pools that there are now.
func (w *worker) setPools(ctx context.Context, infos []poolInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]bool{}
	for _, info := range infos {
		if info.Protocol != Protocol || w.about.Lacks(info.Needs) != "" {
			continue
		}
		now[info.key()] = true
		known := w.pools[info.key()]
		if known != nil && known.info.Spec != info.Spec {
			known.retire()
			known = nil
		}
		if known == nil {
			known = newWorkPool(ctx, w, info)
			w.pools[info.key()] = known
		}
		known.info.Hold = info.Hold
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
	if w.drained || w.trouble != "" {
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
		p, message := w.next(ctx, turn)
		if message == nil {
			<-w.slots
			continue
		}
		w.count(1)
		w.tasks.Go(func() {
			defer func() { w.count(-1); <-w.slots }()
			p.attempt(ctx, message)
		})
	}
}

// count notes that an attempt was pulled, or is over.
func (w *worker) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy += n
	w.pulling = false
}

// next waits for an attempt. Pools get their turns; nobody waits long for an empty one while others
// may have something.
func (w *worker) next(ctx context.Context, turn int) (*workPool, jetstream.Msg) {
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
			if message := p.fetch(ctx, 0); message != nil {
				return p, message
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
