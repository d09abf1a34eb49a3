package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// The library leaves goroutines behind: for a connection that published an object and was closed
// while it reconnected, and for an object whose reading is cancelled as its first part arrives.
func TestMain(m *testing.M) {
	const library = "github.com/nats-io/nats.go/jetstream."
	goleak.VerifyTestMain(
		m,
		goleak.IgnoreTopFunction(library+"(*jetStream).resetPendingAcksOnReconnect"),
		goleak.IgnoreAnyFunction(library+"(*obs).Get.func2"),
	)
}

const testVersion = "test"

// world is a hub with what a test starts on it.
type world struct {
	t      *testing.T
	server *Server
	url    string // of a coordinator
	worker string // of a worker
	dir    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.serve("127.0.0.1:" + testenv.FreePort(t))
	t.Cleanup(func() { w.server.Close() })
	return w
}

// serve starts the hub on an address; the same directory makes it the same hub.
func (w *world) serve(listen string) {
	w.t.Helper()
	var err error
	if w.server, err = StartServer(ServerConfig{Listen: listen, Dir: filepath.Join(w.dir, "hub")}); err != nil {
		w.t.Fatal(err)
	}
	w.url, w.worker = w.server.URL(RoleCoordinator), w.server.URL(RoleWorker)
	w.dial() // which makes the stores, as fit fleet serve does
}

func (w *world) dial() *Hub { return w.dialAt(w.url, RoleCoordinator) }

func (w *world) dialAt(url, role string) *Hub {
	w.t.Helper()
	hub, err := Dial(w.t.Context(), Dialing{URL: url, Name: "test", Role: role})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(hub.Close)
	return hub
}

// fake makes attempts in which a function decides what happens.
type fake struct {
	sink experiment.Sink
	do   func(ctx context.Context, cell experiment.Cell, attempt int) ledger.Record
}

func (f *fake) Warm(context.Context) error                                { return nil }
func (f *fake) Check(context.Context) error                               { return nil }
func (f *fake) Probe(context.Context, func(experiment.Probe) error) error { return nil }
func (f *fake) Close() error                                              { return nil }
func (f *fake) Execute(ctx context.Context, cell experiment.Cell, attempt int) (ledger.Record, error) {
	r := f.do(ctx, cell, attempt)
	if r.Verdict != ledger.Error {
		r.AgentTracePath = cell.RunDir(attempt) + "/agent.ndjson"
		r.Agent, r.AgentVersion, r.Isolation = "builtin", "1", cmp.Or(r.Isolation, "none")
	}
	if ctx.Err() != nil {
		return ledger.Record{
			Verdict: ledger.Error, ErrorClass: ledger.ErrorInterrupted, ErrorMessage: context.Cause(ctx).Error(),
		}, nil
	}
	dir := f.sink.AttemptDir(cell.RunDir(attempt))
	if err := os.MkdirAll(filepath.Join(dir, "cwd"), 0o700); err != nil {
		return r, err
	}
	return r, os.WriteFile(filepath.Join(dir, "agent.ndjson"), []byte(cell.Name()+"\n"), 0o600)
}

// verdict is what a cell comes to wherever it runs.
func verdict(cell experiment.Cell) ledger.Record {
	r := ledger.Record{Verdict: ledger.Pass, DurationMs: 1}
	if cell.Seed%3 == 0 {
		r.Verdict = ledger.Fail
	}
	r.Grade = &ledger.Grade{Verdict: r.Verdict, GatesPass: r.Verdict == ledger.Pass, Healthy: true}
	return r
}

type doing = func(ctx context.Context, cell experiment.Cell, attempt int) ledger.Record

// work starts a worker and returns a function that ends it.
func (w *world) work(name string, slots int, do doing, change func(*WorkerConfig)) context.CancelFunc {
	w.t.Helper()
	hub := w.dialAt(cmp.Or(w.worker, w.url), RoleWorker)
	ctx, cancel := context.WithCancel(context.Background())
	cfg := WorkerConfig{
		Hub:       hub,
		Name:      name,
		Slots:     slots,
		Agents:    map[string]string{"builtin": "1"},
		Isolation: []string{"none"},
		Policy:    Policy{Unisolated: true},
		Version:   testVersion,
		Dir:       filepath.Join(w.dir, "work"),
		Note:      func(text string) { w.t.Log(name, text) },
		Executor: func(_ context.Context, job Job) (Attempts, error) {
			return &fake{sink: job.Sink, do: do}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	var working sync.WaitGroup
	working.Go(func() {
		if err := Work(ctx, cfg); err != nil {
			w.t.Errorf("worker %s: %v", name, err)
		}
	})
	end := func() { cancel(); working.Wait() }
	w.t.Cleanup(end)
	return end
}

// prepared is an experiment of some tasks and arms.
func (w *world) prepared(tasks, runs int, arms ...string) *experiment.Prepared {
	w.t.Helper()
	dir := filepath.Join(w.dir, "family")
	p := &experiment.Prepared{
		Setup: experiment.Setup{Family: &task.Family{Dir: dir, Name: "family"}, Runs: runs},
		Plan:  &experiment.Plan{Runs: runs, Seed: 7},
	}
	for i := range tasks {
		id := fmt.Sprintf("t%d", i)
		at := filepath.Join(dir, "tasks", id)
		if err := os.MkdirAll(at, 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "agent.task.md"), []byte("do "+id), 0o600); err != nil {
			w.t.Fatal(err)
		}
		p.Family.Tasks = append(p.Family.Tasks, task.Task{ID: id, Dir: at})
		p.Plan.Tasks = append(p.Plan.Tasks, experiment.PlannedTask{ID: id})
	}
	for _, name := range arms {
		arm := experiment.Arm{Name: name, Agent: "builtin"}
		if err := arm.Seal(nil); err != nil {
			w.t.Fatal(err)
		}
		p.Arms = append(p.Arms, arm)
		p.Plan.Arms = append(p.Plan.Arms, experiment.PlannedArm{Arm: arm, AgentVersion: "1"})
	}
	if err := p.Plan.Seal(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// coordinate opens a run directory and makes the executor of it.
func (w *world) coordinate(p *experiment.Prepared, output string, change func(*Config)) (*experiment.Directory,
	*Executor,
) {
	w.t.Helper()
	dir, err := experiment.OpenDirectory(output, p.Plan, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = dir.Close() }) // a second time where the test did
	cfg := Config{
		Hub:      w.dial(),
		Prepared: p,
		Dir:      output,
		Version:  testVersion,
		Provider: func(*experiment.Arm) string { return "model" },
		Lease:    defaultLease, // also where it is busy, no attempt is taken from a worker by mistake
		Note:     func(text string) { w.t.Log("coordinator:", text) },
	}
	if change != nil {
		change(&cfg)
	}
	executor, err := New(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return dir, executor
}

// runLimit ends an experiment of a test that hangs, so that the test is named.
const runLimit = 10 * time.Minute

// run runs the cells that are left.
func (w *world) run(dir *experiment.Directory, e *Executor) experiment.Outcome {
	w.t.Helper()
	outcome, err := runAll(w.t.Context(), dir, e)
	if err != nil {
		w.t.Fatal(err)
	}
	return outcome
}

// start is run beside what the test does meanwhile.
func (w *world) start(dir *experiment.Directory, e *Executor) <-chan experiment.Outcome {
	w.t.Helper()
	done := make(chan experiment.Outcome, 1)
	go func() {
		outcome, err := runAll(w.t.Context(), dir, e)
		if err != nil {
			w.t.Error(err)
		}
		done <- outcome
	}()
	return done
}

func runAll(ctx context.Context, dir *experiment.Directory, e *Executor) (experiment.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	outcome, err := experiment.Run(ctx, dir, experiment.Config{
		Executor: e,
		Places:   e.Places,
		Changed:  e.Changed(),
		Progress: func(p experiment.Progress) {
			if p.Last != nil {
				e.Sealed(p.Last)
			}
		},
	})
	return outcome, errors.Join(err, e.Close(), dir.Close())
}

// check makes sure that every cell has one record that counts, with the verdict it has anywhere,
// that the ledger verifies, and that the files are where a local run leaves them.
func (w *world) check(p *experiment.Prepared, output string) []ledger.Record {
	w.t.Helper()
	contents, err := ledger.ReadFile(filepath.Join(output, experiment.LedgerFile))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(contents.Problems) > 0 {
		w.t.Fatalf("the ledger: %+v", contents.Problems)
	}
	final := map[ledger.Cell]ledger.Record{}
	for _, r := range contents.Records {
		if !r.Final {
			continue
		}
		if _, twice := final[r.Cell()]; twice {
			w.t.Errorf("%s is counted twice", r.Key())
		}
		final[r.Cell()] = r
	}
	for _, cell := range p.Plan.Cells() {
		key := ledger.Cell{Arm: cell.Arm, TaskID: cell.TaskID, RunIndex: cell.RunIndex}
		r, there := final[key]
		if want := verdict(cell).Verdict; !there || r.Verdict != want {
			w.t.Errorf("%s: %q (%s), want %q", cell.Name(), r.Verdict, r.ErrorMessage, want)
			continue
		}
		got, err := os.ReadFile(filepath.Join(output, filepath.FromSlash(r.RunDir), "agent.ndjson"))
		if err != nil || string(got) != cell.Name()+"\n" {
			w.t.Errorf("%s left %q, %v", cell.Name(), got, err)
		}
	}
	_, problems := local.CheckArtefacts(output, contents.Records)
	for _, problem := range problems {
		w.t.Error(problem)
	}
	return contents.Records
}

func TestCellsRunOnSeveralWorkers(t *testing.T) {
	w := newWorld(t)
	p, output := w.prepared(5, 3, "a", "b"), filepath.Join(w.dir, "run")
	var byWorker [3]atomic.Int32
	for i := range byWorker {
		w.work(fmt.Sprintf("w%d", i), 2, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
			byWorker[i].Add(1)
			return verdict(cell)
		}, nil)
	}
	dir, e := w.coordinate(p, output, nil)
	if err := e.Probe(t.Context(), dir.RecordProbe); err != nil {
		t.Fatal(err)
	}
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	records := w.check(p, output)
	if len(records) != 30 {
		t.Errorf("%d records", len(records))
	}
	for _, r := range records {
		if r.Worker == "" {
			t.Errorf("%s has no worker", r.Key())
		}
	}
	if names := streams(t, w.dial()); len(names) != 3 { // the fleet's own
		content, _ := json.Marshal(names)
		t.Errorf("the hub keeps %s", content)
	}
}

func streams(t *testing.T, h *Hub) []string {
	t.Helper()
	var names []string
	lister := h.js.StreamNames(t.Context())
	for name := range lister.Name() {
		names = append(names, name)
	}
	return names
}
