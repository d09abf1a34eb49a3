package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/task"
)

// An infrastructure error is retried within its limit, on another worker where there is one.
// Verdicts are not retried.
func TestInfrastructureErrorsPreferAnotherWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(4, 1, "a"), filepath.Join(w.dir, "run")
	var mu sync.Mutex
	by := map[string][]string{}
	for _, name := range []string{"broken", "w2", "w3"} {
		w.work(name, 2, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
			mu.Lock()
			by[cell.TaskID] = append(by[cell.TaskID], name)
			mu.Unlock()
			if name == "broken" || cell.TaskID == "t0" {
				return ledger.Record{
					Verdict:      ledger.Error,
					ErrorClass:   ledger.ErrorSetup,
					ErrorMessage: "no such image for " + cell.TaskID,
				}
			}
			return verdict(cell)
		}, nil)
	}
	dir, e := w.coordinate(p, output, nil)
	eventually(t, 5*time.Second, "all workers are known", func() bool { return e.Places() > 6 })
	outcome := <-w.steered(t.Context(), dir, e, experiment.Config{BreakAfter: -1})
	if outcome.Status != experiment.Incomplete || outcome.Progress.Errors != 1 {
		t.Fatalf("%+v", outcome)
	}
	for id, names := range by {
		broken := 0
		for _, name := range names {
			if name == "broken" {
				broken++
			}
		}
		switch {
		case broken > 1:
			t.Errorf("%s came to the broken worker again: %v", id, names)
		case id == "t0" && (len(names) != 3 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != 3):
			t.Errorf("t0 was tried by %v, want each worker once", names)
		case id != "t0" && len(names) != 1+broken:
			t.Errorf("%s was tried by %v", id, names)
		}
	}
}

// closing is a fake that says when it is closed.
type closing struct {
	fake
	closed atomic.Bool
}

func (c *closing) Close() error { c.closed.Store(true); return nil }

// A coordinator that is started again with a larger plan leaves the attempts alone that workers
// make of the earlier one: they have a directory of their own, and their results count.
func TestAGrownExperimentLeavesRunningAttemptsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	var mu sync.Mutex
	var dirs []string
	var jobs []*closing
	gate := make(chan struct{})
	var begun atomic.Int32
	w.work("w1", 2, nil, func(cfg *WorkerConfig) {
		cfg.Executor = func(_ context.Context, job Job) (Attempts, error) {
			c := &closing{}
			c.fake = fake{sink: job.Sink, do: func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
				if begun.Add(1); cell.RunIndex == 0 {
					<-gate
					if c.closed.Load() {
						t.Error("the executor was closed while it made an attempt")
					}
				}
				return verdict(cell)
			}}
			mu.Lock()
			defer mu.Unlock()
			dirs, jobs = append(dirs, job.Dir), append(jobs, c)
			return c, nil
		}
	})
	dir, e := w.coordinate(p, output, nil)
	stopped, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = e.await(stopped, work{
			Protocol: Protocol,
			Run:      e.run,
			Pool:     e.pools[0].Name,
			Cell:     p.Plan.Cells()[0],
			Attempt:  1,
		}, e.pools[0])
	}()
	line := []byte(`{"arm":"a","taskId":"t0","runIndex":0,"attempt":1,"startMs":1,"pid":1}`)
	if err := appendLine(filepath.Join(output, experiment.AttemptsFile), line); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the first runs", func() bool { return begun.Load() == 1 })
	abandon(t, dir, e)
	stop()
	<-ended
	p = w.prepared(1, 3, "a")
	dir, e = w.coordinate(p, output, nil)
	done := w.steered(t.Context(), dir, e, experiment.Config{})
	eventually(t, 5*time.Second, "the others ran", func() bool { return begun.Load() == 3 })
	close(gate)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if records := w.check(p, output); len(records) != 3 || begun.Load() != 3 {
		t.Errorf("%d records of %d attempts, want 3 of 3", len(records), begun.Load())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(dirs) != 2 || dirs[0] == dirs[1] {
		t.Errorf("the experiments work in %v", dirs)
	}
}

// The hub keeps trees that experiments need and forgets old ones.
func TestOldTreesAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	hub := w.dial()
	store, err := hub.js.ObjectStore(t.Context(), treesBucket)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Repeat("0", 64)
	if _, err := store.PutBytes(t.Context(), old, []byte("x")); err != nil {
		t.Fatal(err)
	}
	dir, e := w.coordinate(p, output, nil)
	other := &Executor{cfg: Config{Hub: hub}}
	for _, tt := range []struct {
		before time.Time
		kept   bool
	}{{time.Now().Add(-time.Hour), true}, {time.Now().Add(time.Hour), false}} {
		if err := other.pruneTrees(t.Context(), store, tt.before); err != nil {
			t.Fatal(err)
		}
		if _, err := store.GetInfo(t.Context(), old); errors.Is(err, jetstream.ErrObjectNotFound) == tt.kept {
			t.Errorf("trees from before %s are removed: %v", tt.before, err)
		}
	}
	// those of the experiment that another coordinator runs are needed
	w.work("w1", 1, passes, nil)
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}

// A name belongs to one worker of the fleet; a worker that is started again has its own.
func TestAWorkersNameIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin := func(dir, name string) (*worker, func(), error) {
		return newWorker(t.Context(), WorkerConfig{Hub: w.dial(), Name: name, Dir: filepath.Join(w.dir, dir)})
	}
	first, unlock, err := begin("one", "w")
	if err == nil {
		err = first.announce(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"one", "two"} {
		if _, _, err := begin(dir, "w"); err == nil || !strings.Contains(err.Error(), "give another --name") {
			t.Errorf("a second worker in %s: %v", dir, err)
		}
	}
	unlock() // as after a kill: what it announced is still there
	again, unlock, err := begin("one", "w")
	if err != nil || again.about.ID != first.about.ID {
		t.Errorf("the same worker again: %v", err)
	}
	unlock()
}

// A task with an image runs in a container wherever it runs, and what its image is built from
// travels.
func TestContainersOfTasksTravel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(2, 1, "a"), filepath.Join(w.dir, "run")
	image := filepath.Join(p.Family.Tasks[1].Dir, "image")
	if err := os.Mkdir(image, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(image, "Dockerfile"), []byte("FROM base"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Family.Tasks[1].Settings.Environment = &task.Environment{
		Dockerfile: filepath.Join(image, "Dockerfile"),
		Context:    image,
	}
	for name, engines := range map[string][]string{"plain": nil, "engine": {"podman"}} {
		w.work(name, 1, nil, func(cfg *WorkerConfig) {
			cfg.Engines = engines
			cfg.Executor = func(_ context.Context, job Job) (Attempts, error) {
				do := func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
					r := verdict(cell)
					r.Isolation = job.Prepared.Isolation
					if cell.TaskID == "t0" {
						return r
					}
					env := job.Prepared.Family.Tasks[1].Settings.Environment
					content, err := os.ReadFile(env.Dockerfile)
					if err != nil || string(content) != "FROM base" || env.Context != filepath.Dir(env.Dockerfile) {
						t.Errorf("%s has %+v: %q %v", name, env, content, err)
					}
					return r
				}
				return &fake{sink: job.Sink, do: do}, nil
			}
		})
	}
	dir, e := w.coordinate(p, output, func(cfg *Config) { cfg.Isolation, cfg.Engine = "none", "podman" })
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	for _, r := range w.check(p, output) {
		want := map[string]string{"t0": "none", "t1": "podman"}[r.TaskID]
		if r.Isolation != want || want == "podman" && r.Worker != "engine" {
			t.Errorf("%s ran on %s with isolation %s", r.TaskID, r.Worker, r.Isolation)
		}
	}
}
