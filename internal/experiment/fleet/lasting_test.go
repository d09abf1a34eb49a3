package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

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
	// What the first coordinator cannot take back comes to the second after the lease.
	soon := func(cfg *Config) { cfg.Lease = 12 * time.Second }
	dir, e := w.coordinate(p, output, soon)
	stopped, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = e.await(stopped, e.workOf(e.pools[0], p.Plan.Cells()[0], 1), e.pools[0])
	}()
	line := []byte(`{"arm":"a","taskId":"t0","runIndex":0,"attempt":1,"startMs":1,"pid":1}`)
	if err := appendLine(filepath.Join(output, experiment.AttemptsFile), line); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first runs", func() bool { return begun.Load() == 1 })
	abandon(t, dir, e)
	stop()
	<-ended
	p = w.prepared(1, 3, "a")
	dir, e = w.coordinate(p, output, soon)
	done := w.steered(t.Context(), dir, e, experiment.Config{})
	eventually(t, "the others ran", func() bool { return begun.Load() == 3 })
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
		hub := w.dialAt(w.worker, RoleWorker)
		return newWorker(t.Context(), WorkerConfig{Hub: hub, Name: name, Dir: filepath.Join(w.dir, dir)})
	}
	first, unlock, err := begin("one", "w")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"one", "two"} {
		if err := first.announce(t.Context()); err != nil { // it is forgotten after a while
			t.Fatal(err)
		}
		if _, _, err := begin(dir, "w"); err == nil || !strings.Contains(err.Error(), "choose another --name") {
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
		t.Run(name, func(t *testing.T) {
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

// An experiment whose coordinator is gone is shown as such, and forgotten when nobody comes back.
func TestAnExperimentWithoutACoordinator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hub := w.dial()
	if err := hub.Set(t.Context(), Settings{Lease: 7 * time.Second}); err != nil {
		t.Fatal(err)
	}
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	dir, e := w.coordinate(p, output, func(cfg *Config) { cfg.Lease, cfg.Pull = 0, true })
	left := func() []PoolStatus {
		status, err := hub.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Pools
	}
	if pools := left(); len(pools) != 1 || pools[0].Left {
		t.Errorf("with a coordinator: %+v", pools)
	}
	infos, err := hub.pools(t.Context())
	if err != nil || infos[0].LeaseMs != 7000 {
		t.Errorf("the fleet's lease of 7 s is %d ms there, %v", infos[0].LeaseMs, err)
	}
	abandon(t, dir, e)
	living, err := hub.bucket(t.Context(), workersBucket)
	if err == nil {
		err = living.Delete(t.Context(), livesPrefix+e.run) // as it goes after a while
	}
	if err != nil || !left()[0].Left {
		t.Errorf("without a coordinator: %+v, %v", left(), err)
	}
	other, second := w.coordinate(p, filepath.Join(w.dir, "other"), nil)
	if len(left()) != 2 {
		t.Errorf("a young experiment was forgotten: %+v", left())
	}
	if _, err := second.livingPools(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if pools := left(); len(pools) != 1 || pools[0].Left {
		t.Errorf("%+v, want the one that has a coordinator", pools)
	}
	jobs := make(chan Job, 1)
	w.work("w1", 1, passes, func(cfg *WorkerConfig) {
		cfg.Executor = func(_ context.Context, job Job) (Attempts, error) {
			jobs <- job
			return &fake{sink: job.Sink, do: passes}, nil
		}
	})
	if outcome := w.run(other, second); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if job := <-jobs; job.Pull {
		t.Error("images are got although nobody asked for it")
	}
	dir, e = w.coordinate(p, output, func(cfg *Config) { cfg.Pull = true })
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if job := <-jobs; !job.Pull {
		t.Error("--pull does not reach the worker")
	}
}
