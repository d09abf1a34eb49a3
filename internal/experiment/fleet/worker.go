package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
)

// WorkerConfig configures a worker.
type WorkerConfig struct {
	Hub *Hub
	// Name is the worker's name; empty is the host's name.
	Name   string
	Slots  int // attempts at a time; 0 is 1
	Labels []string
	// Agents are the versions of the agents that are installed, by id, and Isolation what works.
	Agents    map[string]string
	Isolation []string
	Engines   []string // of containers, that work
	Environ   []string
	Version   string // of fit
	// Dir is the directory of the worker's trees and the files of its attempts.
	Dir string
	// Policy is what this machine's owner allows.
	Policy Policy
	// Executor makes the executor of an experiment.
	Executor func(ctx context.Context, job Job) (Attempts, error)
	// FreeSpace returns why this machine has no space for attempts; nil if it has.
	FreeSpace func() error
	// Note reports what happens.
	Note func(text string)
	Now  func() time.Time // nil is the system's clock
	// Watched is called while attempts run: a watchdog must kill this process with its sandboxes
	// unless it is called again within that time; 0 means that nothing runs. If it is nil, there is
	// no watchdog.
	Watched func(within time.Duration)
}

// Job is an experiment that a worker makes attempts of.
type Job struct {
	Prepared *experiment.Prepared
	Sink     experiment.Sink // takes the files of attempts
	Pull     bool            // pull images that are not on this machine
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
	trees   string // the directory that keeps them
	environ map[string]string
	slots   chan struct{} // has an entry for each attempt that is made
	reports chan struct{} // has one for each attempt that is reported: a slow hub stops work
	tasks   sync.WaitGroup
	jobs    atomic.Int64 // that were begun: a job never has the directory of one that is not over

	mu      sync.Mutex
	pools   map[string]*workPool
	running map[string]*leased // by run and name of the attempt
	pulling bool               // an attempt may be in flight to us
	busy    int                // attempts that have a slot
	unsent  map[*leased]error  // whose results the hub cannot store, and why
	refuses map[string]string  // why pools are not allowed, by key
	problem string
	drained bool
}

// Work makes this process a worker until the context ends or it is drained. Attempts in flight are
// cancelled when the context ends, and reported as interrupted. A worker whose key is revoked ends.
func Work(ctx context.Context, cfg WorkerConfig) error {
	w, unlock, err := newWorker(ctx, cfg)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.announce(ctx); err != nil && !cannotWrite(err) { // it is said again
		return fmt.Errorf("announce this worker: %w", err)
	}
	w.cfg.Note(fmt.Sprintf("worker %s: %d at a time", w.about.Name, w.about.Slots))
	w.tasks.Go(func() { w.heartbeats(ctx) })
	w.tasks.Go(func() { w.pull(ctx) })
	w.followPools(ctx)
	cancel()
	w.tasks.Wait()
	w.leave()
	if w.cfg.Hub.refused() {
		return errRefused
	}
	return nil
}

func newWorker(ctx context.Context, cfg WorkerConfig) (*worker, func(), error) {
	cfg.Slots = max(cfg.Slots, 1)
	cfg.Note = plain(cfg.Note)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Watched == nil {
		cfg.Watched = func(time.Duration) {}
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
		trees:   filepath.Join(cfg.Dir, "trees"),
		environ: map[string]string{},
		slots:   make(chan struct{}, cfg.Slots),
		reports: make(chan struct{}, min(cfg.Slots, maxReports)),
		pools:   map[string]*workPool{},
		running: map[string]*leased{},
		unsent:  map[*leased]error{},
		refuses: map[string]string{},
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

// announced is the key of the worker's announcement, which only it can write.
func (w *worker) announced() string { return w.cfg.Hub.public + "." + w.about.Name }

// announce publishes what the worker is and does.
func (w *worker) announce(ctx context.Context) error {
	w.mu.Lock()
	about := w.about
	about.Busy, about.Trouble, about.Draining = w.busy, w.problem, w.drained
	for _, err := range w.unsent {
		about.Trouble = fmt.Sprintf("the hub cannot store its results: %v", err)
	}
	for _, l := range w.running {
		about.Running = append(about.Running, Running{
			Run:     l.work.Run,
			Attempt: l.work.name(),
			SinceMs: l.began.UnixMilli(),
			Proof:   claimProof(l.work.Ticket, w.cfg.Hub.public),
		})
	}
	about.Refuses = maps.Clone(w.refuses)
	w.mu.Unlock()
	about.NowMs = w.cfg.Now().UnixMilli()
	content, err := json.Marshal(about)
	if err != nil {
		return err
	}
	return w.cfg.Hub.put(ctx, workersBucket, w.announced(), content)
}

// heartbeats announces the worker periodically.
func (w *worker) heartbeats(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		trouble := ""
		if err := w.cfg.FreeSpace(); err != nil {
			trouble = err.Error()
		}
		w.mu.Lock()
		before := w.problem
		w.problem = trouble
		w.mu.Unlock()
		if trouble != before && trouble != "" {
			w.cfg.Note("no further attempts for now: " + trouble)
		}
		_ = w.announce(ctx) // it is said again
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// leave takes the worker off the list.
func (w *worker) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, p := range w.pools {
		p.close()
	}
	_ = w.cfg.Hub.remove(ctx, workersBucket, w.announced()) // it is forgotten soon anyway
}
