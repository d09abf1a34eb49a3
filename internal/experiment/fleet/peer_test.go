package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// another returns a function that connects workers with a key of their own.
func (w *world) another(name string) func() *Hub {
	w.t.Helper()
	dir := filepath.Join(w.dir, "hub")
	file, err := AddKey(dir, name, RoleWorker)
	if err != nil {
		w.t.Fatal(err)
	}
	var url string
	eventually(w.t, "the hub knows the key", func() bool {
		content, err := os.ReadFile(file)
		if url = strings.TrimSpace(string(content)); err != nil || url == "" {
			return false
		}
		hub, err := Dial(w.t.Context(), Dialing{URL: url, Role: RoleWorker})
		if err == nil {
			hub.Close()
		}
		return err == nil
	})
	return func() *Hub { return w.dialAt(url, RoleWorker) }
}

// said collects notes.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(text + "\n")
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

// A worker that says that it is making an attempt, and keeps its lease, does not have it forever.
func TestAnAttemptThatTakesTooLongIsGivenToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	enemy, notes, began := w.another("enemy"), &said{}, make(chan struct{})
	cfg := func(cfg *WorkerConfig) { cfg.Hub = enemy() }
	w.work("slow", 1, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
		close(began)
		<-ctx.Done()
		return verdict(cell)
	}, cfg)
	dir, e := w.coordinate(p, output, func(cfg *Config) { cfg.Note = notes.note })
	e.mu.Lock()
	e.longest = 3 * time.Second
	e.mu.Unlock()
	done := w.start(dir, e)
	<-began
	eventually(t, "there is nobody else", func() bool { return notes.has("waits for a worker with another key") })
	w.work("w1", 1, passes, nil)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if records := w.check(p, output); len(records) != 1 || records[0].Worker != "w1" {
		t.Errorf("%+v", records)
	}
	if !notes.has("worker slow with key U") || !notes.has("has held it for longer than 3s") {
		t.Errorf("it says %s", notes.text.String())
	}
}

// Nobody says for others that they are making an attempt.
func TestOnlyWhoWasGivenAnAttemptIsMakingIt(t *testing.T) {
	t.Parallel()
	const name = "runs/t/a/0/1"
	own := &waiting{work: work{Ticket: ticketOf("secret", name)}}
	e := &Executor{
		run: "r", waiting: map[string]*waiting{token(name): own},
		cfg: Config{Prepared: &experiment.Prepared{Setup: experiment.Setup{Family: &task.Family{}}}},
	}
	for key, proof := range map[string]string{"OTHER": claimProof(own.work.Ticket, "OWN"), "NONE": ""} {
		t.Run(key, func(t *testing.T) {
			e.follow([]Worker{{Name: "w", Key: key, Running: []Running{{Run: "r", Attempt: name, Proof: proof}}}})
			event, err := json.Marshal(event{Name: name, Worker: "w", Proof: proof})
			if err != nil {
				t.Fatal(err)
			}
			e.begun(&nats.Msg{Subject: eventSubject("r", key), Data: event})
			if e.claimed[token(name)] || own.worker != "" {
				t.Errorf("key %s speaks for another one", key)
			}
		})
	}
	proof := claimProof(own.work.Ticket, "OWN")
	e.follow([]Worker{{Name: "w", Key: "OWN", Running: []Running{{Run: "r", Attempt: name, Proof: proof}}}})
	if !e.claimed[token(name)] || own.worker != "w" {
		t.Error("the worker that has it is not believed")
	}
}

// What one key says goes wrong does not stop an experiment that others continue.
func TestOneKeyDoesNotStopAnExperiment(t *testing.T) {
	t.Parallel()
	for _, class := range []string{ledger.ErrorSetup, ledger.ErrorAuth, ledger.ErrorBudget} {
		w := newWorld(t)
		p, output := w.prepared(6, 1, "a"), filepath.Join(w.dir, "run")
		enemy := w.another("enemy")
		const often = 3
		var failed atomic.Int32
		enough := make(chan struct{})
		w.work("enemy", 1, func(context.Context, experiment.Cell, int) ledger.Record {
			if failed.Add(1) == often {
				close(enough)
			}
			return ledger.Record{Verdict: ledger.Error, ErrorClass: class, ErrorMessage: "it does not work"}
		}, func(cfg *WorkerConfig) { cfg.Hub = enemy() })
		w.work("w1", 1, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
			select { // the other one fails as often as would stop an experiment
			case <-enough:
			case <-ctx.Done():
			}
			return verdict(cell)
		}, nil)
		dir, e := w.coordinate(p, output, nil)
		eventually(t, "both are known", func() bool { return e.Places() > 4 })
		if outcome := <-w.steered(t.Context(), dir, e, experiment.Config{BreakAfter: often}); outcome.Status !=
			experiment.Complete {
			t.Errorf("%s: %+v", class, outcome)
		}
		w.check(p, output)
	}
}

// However much a key sends, others are heard, and what nobody needs is not kept.
func TestOneKeyDoesNotFloodOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(2, 1, "a"), filepath.Join(w.dir, "run")
	enemy, notes := w.another("enemy")(), &said{}
	dir, e := w.coordinate(p, output, func(cfg *Config) { cfg.Note = notes.note })
	subject := "$KV." + workersBucket + "." + enemy.public + "."
	if _, err := enemy.js.Publish(t.Context(), subject+"large", make([]byte, 2*maxAnnouncement)); err == nil {
		t.Error("an announcement may have any size")
	}
	for i := range 3 * maxPerKey {
		content := fmt.Appendf(nil, `{"name":"a%d","slots":1}`, i)
		if err := enemy.nc.Publish(fmt.Sprintf("%sa%d", subject, i), content); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * maxGarbage {
		if err := enemy.nc.Publish(doneSubject(e.run, enemy.public, fmt.Sprint(i)), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		file := fileSubject(e.run, enemy.public, newNonce())
		if err := enemy.nc.Publish(file, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := enemy.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	w.work("w1", 1, passes, nil)
	eventually(t, "the worker is among those that are looked at", func() bool {
		began := time.Now()
		workers, err := w.dial().Workers(t.Context())
		own := 0
		for i := range workers {
			if workers[i].Name == "w1" {
				own++
			}
		}
		if err != nil || len(workers) > maxPerKey+1 || time.Since(began) > 2*listWorkers {
			t.Fatalf("%d workers in %s, %v", len(workers), time.Since(began), err)
		}
		return own == 1
	})
	if err := e.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{doneStream(e.run), filesStream(e.run)} {
		stream, err := e.cfg.Hub.js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("fit.*."+e.run+"."+enemy.public+".*"))
		if err != nil || len(info.State.Subjects) > 0 {
			t.Errorf("%s keeps %d messages of the key, %v", name, len(info.State.Subjects), err)
		}
	}
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete || !notes.has("floods the hub") {
		t.Fatalf("%+v, %s", outcome, notes.text.String())
	}
	w.check(p, output)
}

// A key that reports broken objects that are not is not listened to for long.
func TestFalseReportsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, e := w.coordinate(w.prepared(1, 1, "a"), filepath.Join(w.dir, "run"), nil)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	e.cancel() // the test looks in the place of the watch
	e.workers.Wait()
	report := func(key string) {
		content, err := json.Marshal(event{Worker: "w", Broken: e.trees[0]})
		if err != nil {
			t.Fatal(err)
		}
		e.begun(&nats.Msg{Subject: eventSubject(e.run, key), Data: content})
	}
	for range maxFalseReports {
		report("ENEMY")
		e.repaired = time.Time{}
		e.repair(t.Context())
	}
	if report("ENEMY"); e.broken != "" {
		t.Error("it is still listened to")
	}
	if report("OTHER"); e.broken == "" {
		t.Error("nobody is listened to any more")
	}
}

// What a coordinator calls its experiment is plain text on the terminal of a worker, and so is what
// a worker says on that of a coordinator.
func TestNotesArePlain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	p.Family.Name = "\x1b[31mred\nforged"
	notes := &said{}
	w.work("w1", 1, passes, func(cfg *WorkerConfig) {
		cfg.Note = notes.note
		cfg.Executor = func(context.Context, Job) (Attempts, error) {
			return nil, fmt.Errorf("%s: %w", p.Family.Name, errPolicy)
		}
	})
	_, e := w.coordinate(p, output, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { e.Wait(ctx, p.Plan.Cells()[0], 1) })
	eventually(t, "the worker refuses it", func() bool { return notes.has("not allowed on this worker") })
	cancel()
	waiting.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if notes.has("\x1b") || notes.has("\nforged") {
		t.Errorf("%q", notes.text.String())
	}
}

// Files that no result names do not fill the hub's disk; those that one names stay.
func TestFilesThatNobodyNamesAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir, e := w.coordinate(w.prepared(1, 1, "a"), filepath.Join(w.dir, "run"), nil)
	e.cancel() // the test looks in the place of the watch
	e.workers.Wait()
	hub := w.dialAt(w.worker, RoleWorker)
	named := newNonce()
	for _, name := range []string{named, newNonce(), newNonce()} {
		if _, err := hub.js.Publish(t.Context(), fileSubject(e.run, hub.public, name), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	e.arrived["x"] = arrival{done: done{File: &file{Name: named}, key: hub.public}}
	left := func() map[string]uint64 {
		if err := e.drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := e.files.Info(t.Context(), jetstream.WithSubjectFilter(fileSubject(e.run, "*", "*")))
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Subjects
	}
	if n := len(left()); n != 3 {
		t.Errorf("there is room, and %d of 3 files are left", n)
	}
	e.maxFiles = 2
	if n := len(left()); n != 3 {
		t.Errorf("a result may still name them, and %d of 3 files are left", n)
	}
	e.cfg.Lease = time.Nanosecond
	if rest := left(); len(rest) != 1 || rest[fileSubject(e.run, hub.public, named)] == 0 {
		t.Errorf("%v are left", rest)
	}
	e.cfg.Lease = time.Hour
	for range e.maxFiles + 1 {
		if _, err := hub.js.Publish(t.Context(), fileSubject(e.run, hub.public, newNonce()), nil); err != nil {
			t.Fatal(err)
		}
	}
	left()
	if n := len(left()); n != 0 || !e.floods(hub.public) {
		t.Errorf("%d files are left of a key that has too many", n)
	}
	if err := errors.Join(e.Close(), dir.Close()); err != nil {
		t.Error(err)
	}
}

// What one key announces does not take the isolation out of a plan.
func TestNobodyTakesTheIsolationAway(t *testing.T) {
	t.Parallel()
	honest := Worker{Protocol: Protocol, Fit: "1", Name: "w1", Key: "OWN", Isolation: []string{"bwrap"}}
	for _, said := range [][]string{{"bwrap", "none"}, {"none"}, {"x"}, nil} {
		enemy := Worker{Protocol: Protocol, Fit: "1", Name: "z", Key: "ENEMY", Isolation: said}
		for _, workers := range [][]Worker{{honest, enemy}, {enemy, honest}} {
			if _, isolation := Common(workers, "1", nil); isolation != "bwrap" {
				t.Errorf("%q: the plan asks for isolation %q", said, isolation)
			}
		}
	}
}

// What workers say of probes is bounded like what they say of attempts.
func TestProbesAreBounded(t *testing.T) {
	t.Parallel()
	e := &Executor{cfg: Config{Prepared: &experiment.Prepared{}}}
	e.cfg.Prepared.Arms = make([]experiment.Arm, 1)
	for usd, fine := range map[float64]bool{0: true, 0.01: true, -1: false, 1e300: false} {
		if err := e.checkProbes([]experiment.Probe{{Who: "a", CostUSD: &usd}}); (err == nil) != fine {
			t.Errorf("%v: %v", usd, err)
		}
	}
	if e.checkProbes(make([]experiment.Probe, 1000)) == nil {
		t.Error("there may be any number")
	}
}
