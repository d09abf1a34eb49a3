package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// abandon leaves a coordinator as one that was killed leaves it: nothing on the hub is tidied up.
func abandon(t *testing.T, dir *experiment.Directory, e *Executor) {
	t.Helper()
	e.cancel()
	e.workers.Wait()
	e.cfg.Hub.Close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

// A coordinator that dies is replaced by the same command: attempts in flight go on, those that
// have ended meanwhile are taken in, and nothing is paid twice.
func TestACoordinatorThatDiesIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(4, 2, "a"), filepath.Join(w.dir, "run")
	var mu sync.Mutex
	times := map[string]int{}
	gate := make(chan struct{})
	w.work("w1", 3, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		mu.Lock()
		times[cell.Name()]++
		mu.Unlock()
		<-gate
		return verdict(cell)
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	ctx := t.Context()
	for _, cell := range p.Plan.Cells()[:3] { // as the engine does it, without its ending
		line := fmt.Appendf(nil, `{"arm":%q,"taskId":%q,"runIndex":%d,"attempt":1,"startMs":1,"pid":1}`, cell.Arm,
			cell.TaskID, cell.RunIndex)
		if err := appendLine(filepath.Join(output, experiment.AttemptsFile), line); err != nil {
			t.Fatal(err)
		}
		if err := e.publish(ctx, e.workOf(e.pools[0], cell, 1)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "three run", func() bool { mu.Lock(); defer mu.Unlock(); return len(times) == 3 })
	abandon(t, dir, e)
	gate <- struct{}{} // one ends while nobody coordinates
	dir, e = w.coordinate(p, output, nil)
	close(gate)
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if records := w.check(p, output); len(records) != 8 {
		t.Errorf("%d records", len(records))
	}
	for name, n := range times {
		if n != 1 {
			t.Errorf("%s was run %d times", name, n)
		}
	}
}

// A hub that loses everything costs one publication.
func TestAHubThatLosesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	join, err := parseJoinURL(w.url)
	if err != nil {
		t.Fatal(err)
	}
	p, output := w.prepared(6, 2, "a"), filepath.Join(w.dir, "run")
	var count atomic.Int32
	gate := make(chan struct{})
	w.work("w1", 2, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		if count.Add(1) == 5 {
			close(gate)
		}
		return verdict(cell)
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	done := w.start(dir, e)
	<-gate
	w.server.Close()
	if err := os.RemoveAll(filepath.Join(w.dir, "hub", "jetstream")); err != nil {
		t.Fatal(err)
	}
	w.serve(join.Address)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}

// A server that starts again has lost what it kept in memory, which is who is there. The
// coordinator makes the place where workers say so again: otherwise it would never again look after
// them.
func TestAHubThatForgetsWhoIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(4, 1, "a"), filepath.Join(w.dir, "run")
	begun, gate := make(chan struct{}, 4), make(chan struct{})
	w.work("w1", 1, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		begun <- struct{}{}
		<-gate
		return verdict(cell)
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	done := w.start(dir, e)
	<-begun
	hub := w.dialAt(w.url, RoleObserver)
	if err := e.cfg.Hub.js.DeleteStream(t.Context(), "KV_"+workersBucket); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the worker is listed again", func() bool {
		workers, err := hub.Workers(t.Context())
		return err == nil && len(workers) == 1
	})
	close(gate)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}

// Of two results of one attempt the first counts; the other is kept and named.
func TestASecondResultIsKeptAndNotCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(2, 1, "a"), filepath.Join(w.dir, "run")
	w.work("w1", 1, passes, nil)
	dir, e := w.coordinate(p, output, nil)
	first := p.Plan.Cells()[0]
	if _, err := e.Execute(t.Context(), first, 1); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(output, first.RunDir(1))); err != nil { // the engine makes this attempt below
		t.Fatal(err)
	}
	record, err := json.Marshal(verdict(first))
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(done{
		Protocol: Protocol,
		Name:     first.RunDir(1),
		Ticket:   ticketOf(e.secret, first.RunDir(1)),
		Worker:   "late",
		Nonce:    newNonce(),
		Record:   record,
	})
	if err != nil {
		t.Fatal(err)
	}
	late := w.dialAt(w.worker, RoleWorker)
	message, err := late.signed(doneSubject(e.run, late.public, token(first.RunDir(1))), content)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.js.PublishMsg(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	if err := e.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if records := w.check(p, output); len(records) != 2 {
		t.Errorf("%d records", len(records))
	}
	kept, err := os.ReadFile(filepath.Join(output, duplicatesFile))
	if err != nil || !strings.Contains(string(kept), `"worker":"late","counted":"w1"`) {
		t.Errorf("%s %v", kept, err)
	}
}

// A coordinator that finds more results than it may keep in memory takes them from the hub one by
// one.
func TestResultsStayOnTheHubUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(5, 2, "a"), filepath.Join(w.dir, "run")
	const large = inlineRecord / 2
	late := func() time.Time { return time.Now().Add(time.Hour) }
	w.work("w1", 4, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		r := verdict(cell)
		r.Submission = strings.Repeat("x", large)
		r.EndMs = late().UnixMilli() // nobody notes when it began
		return r
	}, func(c *WorkerConfig) { c.Now = late })
	dir, e := w.coordinate(p, output, nil)
	e.mu.Lock()
	e.maxHeld = 2 * large
	e.mu.Unlock()
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if e.held != 0 {
		t.Errorf("%d bytes are still held", e.held)
	}
	for _, r := range w.check(p, output) {
		start, end := time.Since(time.UnixMilli(r.StartMs)), time.Since(time.UnixMilli(r.EndMs))
		if len(r.Submission) != large || max(start.Abs(), end.Abs()) > time.Minute {
			t.Errorf("%s: %d bytes, from %s to %s ago", r.Key(), len(r.Submission), start, end)
		}
	}
}
