package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/ledger"
)

// link is a TCP connection to the hub. Once cut, it drops what is sent and reports no error.
type link struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	cut      bool
	open     []net.Conn
	copying  sync.WaitGroup
	heard    func([]byte) // may be nil
}

func newLink(t *testing.T, to string, heard func([]byte)) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, heard: heard}
	l.copying.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, near, far)
			l.mu.Unlock()
			l.copying.Go(func() { l.copy(near, far) })
			l.copying.Go(func() { l.copy(far, near) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		for _, conn := range l.open {
			_ = conn.Close()
		}
		l.mu.Unlock()
		l.copying.Wait()
	})
	return l
}

func (l *link) copy(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		cut, heard := l.cut, l.heard
		l.mu.Unlock()
		if heard != nil {
			heard(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if !cut {
			_, _ = to.Write(buffer[:n])
		}
	}
}

func (l *link) setCut(cut bool) {
	l.mu.Lock()
	l.cut = cut
	l.mu.Unlock()
}

// through is the hub's URL by way of the link.
func (l *link) through(t *testing.T, url string) string {
	t.Helper()
	join, err := parseJoinURL(url)
	if err != nil {
		t.Fatal(err)
	}
	join.Address = l.listener.Addr().String()
	return join.String()
}

// eventually waits until something is true.
func eventually(t *testing.T, within time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

func passes(_ context.Context, cell experiment.Cell, _ int) ledger.Record { return verdict(cell) }

// A worker that cannot report kills its sandbox before another worker gets the cell.
func TestAWorkerThatIsCutOffStopsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	join, err := parseJoinURL(w.url)
	if err != nil {
		t.Fatal(err)
	}
	wire := newLink(t, join.Address, nil)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	var began, ended atomic.Int64
	w.work("cut", 1, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
		began.Store(time.Now().UnixNano())
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), errFenced) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		ended.Store(time.Now().UnixNano())
		return verdict(cell)
	}, func(cfg *WorkerConfig) { cfg.Hub = w.dialAt(wire.through(t, w.url)) })
	var other atomic.Int64
	dir, e := w.coordinate(p, output, nil)
	done := make(chan experiment.Outcome)
	go func() { done <- w.run(dir, e) }()
	eventually(t, 5*time.Second, "the worker begins", func() bool { return began.Load() > 0 })
	wire.setCut(true)
	w.work("other", 1, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		other.Store(time.Now().UnixNano())
		return verdict(cell)
	}, nil)
	outcome := <-done
	if outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	records := w.check(p, output)
	if len(records) != 1 || records[0].Worker != "other" {
		t.Errorf("%+v", records)
	}
	if ended.Load() == 0 || other.Load() < ended.Load() {
		t.Errorf("the other began %s before the first had ended", time.Duration(ended.Load()-other.Load()))
	}
	wire.setCut(false)
}

// The cap of a provider is never exceeded and holds soon after it is changed.
func TestTheCapHoldsOverTheWholeFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(30, 2, "a"), filepath.Join(w.dir, "run")
	if err := w.dial().SetCap(t.Context(), "model", 3); err != nil {
		t.Fatal(err)
	}
	var running, most atomic.Int32
	gate := make(chan struct{}, 100)
	for _, name := range []string{"w1", "w2", "w3"} {
		w.work(name, 4, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
			now := running.Add(1)
			defer running.Add(-1)
			for {
				before := most.Load()
				if now <= before || most.CompareAndSwap(before, now) {
					break
				}
			}
			<-gate
			return verdict(cell)
		}, nil)
	}
	dir, e := w.coordinate(p, output, nil)
	done := make(chan experiment.Outcome)
	go func() { done <- w.run(dir, e) }()
	eventually(t, 5*time.Second, "three run", func() bool { return running.Load() == 3 })
	for range 12 {
		gate <- struct{}{}
	}
	eventually(t, 5*time.Second, "three run again", func() bool { return len(gate) == 0 && running.Load() == 3 })
	if most.Load() > 3 {
		t.Errorf("%d ran at a time, the cap is 3", most.Load())
	}
	if err := w.dial().SetCap(t.Context(), "model", 6); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Second, "six run", func() bool { return running.Load() == 6 })
	if err := w.dial().SetCap(t.Context(), "model", 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Second, "the limit is 1", func() bool {
		consumer, err := e.cfg.Hub.js.Consumer(t.Context(), e.pools[0].poolInfo.stream(), consumerName)
		return err == nil && consumer.CachedInfo().Config.MaxAckPending == 1
	})
	for range 6 {
		gate <- struct{}{}
	}
	eventually(t, 3*time.Second, "one runs", func() bool { return len(gate) == 0 && running.Load() == 1 })
	if most.Load() > 6 {
		t.Errorf("%d ran at a time, the cap was 6", most.Load())
	}
	close(gate)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}

// Stop means stop: a running agent ends within two seconds, and its attempt is recorded.
func TestCancelReachesTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(3, 1, "a"), filepath.Join(w.dir, "run")
	var running atomic.Int32
	var stopped sync.WaitGroup
	stopped.Add(2)
	w.work("w1", 2, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
		running.Add(1)
		<-ctx.Done()
		stopped.Done()
		return verdict(cell)
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan experiment.Outcome)
	go func() {
		outcome, err := experiment.Run(ctx, dir, experiment.Config{
			Executor: e, Places: e.Places, Changed: e.Changed(),
		})
		if err != nil {
			t.Error(err)
		}
		done <- outcome
	}()
	eventually(t, 5*time.Second, "two run", func() bool { return running.Load() == 2 })
	began := time.Now()
	cancel()
	stopped.Wait()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the agents ran on for %s", took)
	}
	outcome := <-done
	if outcome.Status != experiment.Interrupted {
		t.Errorf("%+v", outcome)
	}
	if err := errors.Join(e.Close(), dir.Close()); err != nil {
		t.Fatal(err)
	}
	contents, err := ledger.ReadFile(filepath.Join(output, experiment.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	byWorker := 0
	for _, r := range contents.Records {
		if r.ErrorClass != ledger.ErrorInterrupted {
			t.Errorf("%s: %s %s", r.Key(), r.Verdict, r.ErrorClass)
		}
		if r.Worker == "w1" {
			byWorker++
		}
	}
	if byWorker != 2 {
		t.Errorf("%d attempts were reported by the worker, want 2", byWorker)
	}
}

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

// A coordinator that dies is replaced by the same command: attempts under way go on, those that
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
		w := work{Protocol: Protocol, Run: e.run, Pool: e.pools[0].Name, Cell: cell, Attempt: 1}
		if err := e.publish(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 5*time.Second, "three run", func() bool { mu.Lock(); defer mu.Unlock(); return len(times) == 3 })
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
	done := make(chan experiment.Outcome)
	go func() { done <- w.run(dir, e) }()
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
		Protocol: Protocol, Name: first.RunDir(1), Worker: "late", Nonce: newNonce(), Record: record,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.dial().js.Publish(t.Context(), doneSubject(e.run, token(first.RunDir(1))), content); err != nil {
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

// Infrastructure errors are retried elsewhere; a full disk, another version and a clock that is off
// are the worker's own trouble.
func TestATroubledFleetFinishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(6, 2, "a", "b"), filepath.Join(w.dir, "run")
	w.work("broken", 1, func(context.Context, experiment.Cell, int) ledger.Record {
		return ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorSandbox, ErrorMessage: "no sandbox"}
	}, nil)
	w.work("full", 1, func(context.Context, experiment.Cell, int) ledger.Record {
		return ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorResources, ErrorMessage: "disk full"}
	}, func(cfg *WorkerConfig) {
		tried := false
		cfg.FreeSpace = func() error {
			if tried {
				return errors.New("disk full")
			}
			tried = true
			return nil
		}
	})
	w.work("other-version", 4, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		t.Errorf("%s ran on a worker with another version", cell.Name())
		return verdict(cell)
	}, func(cfg *WorkerConfig) { cfg.Version = "older" })
	late := func() time.Time { return time.Now().Add(-time.Hour) }
	w.work("late", 2, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		r := verdict(cell)
		r.StartMs = late().UnixMilli()
		r.EndMs = r.StartMs + 1
		return r
	}, func(cfg *WorkerConfig) { cfg.Now = late })
	dir, e := w.coordinate(p, output, nil)
	outcome, err := experiment.Run(t.Context(), dir, experiment.Config{
		Executor: e, Places: e.Places, Changed: e.Changed(), BreakAfter: -1,
	})
	if err := errors.Join(err, e.Close(), dir.Close()); err != nil {
		t.Fatal(err)
	}
	if outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	broke := map[ledger.Cell]bool{}
	for _, r := range w.check(p, output) {
		if off := time.Since(time.UnixMilli(r.StartMs)); off > 10*time.Minute {
			t.Errorf("%s began %s ago", r.Key(), off)
		}
		if r.Worker == "broken" {
			if broke[r.Cell()] {
				t.Errorf("%s was given to the broken worker again", r.Key())
			}
			broke[r.Cell()] = true
		}
	}
	if len(broke) == 0 {
		t.Error("the broken worker got nothing, so that nothing was tested")
	}
}
