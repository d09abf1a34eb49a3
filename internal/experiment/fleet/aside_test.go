package fleet

import (
	"context"
	"errors"
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

// An attempt whose results are refused, in a fleet that has one key, ends with a message.
func TestARefusedAttemptDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	w.work("rich", 1, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		r, fortune := verdict(cell), 1e300
		r.CostUSD = &fortune
		return r
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	e.mu.Lock()
	e.patience = time.Second
	e.mu.Unlock()
	if outcome := w.run(dir, e); outcome.Status == experiment.Complete {
		t.Errorf("%+v", outcome)
	}
	contents, err := ledger.ReadFile(filepath.Join(output, experiment.LedgerFile))
	if err != nil || len(contents.Records) == 0 {
		t.Fatal(err)
	}
	for _, r := range contents.Records {
		if r.Verdict != ledger.Error || !strings.Contains(r.ErrorMessage, "no worker with another key came") {
			t.Errorf("%s: %s", r.Verdict, r.ErrorMessage)
		}
	}
}

// One key does not use up the errors that a cell may have: it fails once at a cell, and soon at
// none.
func TestOneKeyDoesNotUseUpErrors(t *testing.T) {
	t.Parallel()
	e := &Executor{
		faults:   map[string]fault{},
		failedBy: map[ledger.Cell][]string{},
		failedOn: map[ledger.Cell][]string{},
		able:     map[string]bool{"ENEMY": true, "OTHER": true},
	}
	cell := func(n int) ledger.Cell { return ledger.Cell{TaskID: fmt.Sprint(n)} }
	failed := func(n int, key string) error {
		return e.countError(cell(n), &ledger.Record{Verdict: ledger.Error, SignedBy: key, Worker: key})
	}
	for n := range maxFaults {
		if err := failed(n, "ENEMY"); err != nil {
			t.Errorf("the first error at a cell: %v", err)
		}
		if err := failed(n, "ENEMY"); !errors.Is(err, errAside) {
			t.Errorf("the second one of the key: %v", err)
		}
	}
	if err := failed(100, "ENEMY"); !errors.Is(err, errAside) {
		t.Errorf("a key that only fails: %v", err)
	}
	if err := failed(100, "OTHER"); err != nil {
		t.Errorf("another key: %v", err)
	}
	if err := e.countError(cell(101), &ledger.Record{Verdict: ledger.Pass, SignedBy: "ENEMY"}); err != nil {
		t.Errorf("a verdict: %v", err)
	}
	if err := failed(102, "ENEMY"); err != nil {
		t.Errorf("after a verdict: %v", err)
	}
	if delete(e.able, "OTHER"); failed(102, "ENEMY") != nil {
		t.Error("an error does not count although there is nobody else")
	}
}

// A worker whose key is revoked is not shown any more, and its key stays revoked when the engine is
// started again.
func TestARevokedWorkerIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hubs := []*Hub{w.dialAt(w.worker, RoleWorker), w.another("enemy")()}
	dir := filepath.Join(w.dir, "hub")
	url, err := os.ReadFile(urlFile(dir, "enemy"))
	if err != nil {
		t.Fatal(err)
	}
	for i, hub := range hubs { // the other one would expire first
		about := fmt.Appendf(nil, `{"name":"w%d","slots":1}`, i)
		if err := hub.put(t.Context(), workersBucket, fmt.Sprintf("%s.w%d", hub.public, i), about); err != nil {
			t.Fatal(err)
		}
	}
	if err := RevokeKey(dir, "enemy"); err != nil {
		t.Fatal(err)
	}
	viewer := w.dial()
	eventually(t, "it is gone", func() bool {
		workers, err := viewer.Workers(t.Context())
		if err == nil && len(workers) == 0 {
			t.Fatal("they expired")
		}
		return err == nil && len(workers) == 1 && workers[0].Name == "w0"
	})
	w.server.full <- "as if the disk were full"
	eventually(t, "the engine was started again", func() bool { return hubs[0].nc.Stats().Reconnects > 0 })
	eventually(t, "it answers", func() bool { _, err := viewer.Caps(t.Context()); return err == nil })
	hub, err := Dial(t.Context(), Dialing{URL: strings.TrimSpace(string(url)), Role: RoleWorker})
	if err == nil {
		hub.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "refused the token") {
		t.Errorf("the revoked key: %v", err)
	}
}

// Every worker can say to the hub that an attempt of another one shall be given again; nobody makes
// it while its worker proves that it is making it.
func TestAnAttemptIsNotMadeTwiceBecauseSomebodySaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	var begun atomic.Int32
	first, end := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(end) })
	defer release()
	do := func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		if begun.Add(1) == 1 {
			close(first)
			<-end
		}
		return verdict(cell)
	}
	for _, name := range []string{"w1", "w2"} {
		w.work(name, 1, do, nil)
	}
	dir, e := w.coordinate(p, output, nil)
	done := w.start(dir, e)
	<-first
	eventually(t, "its worker says that it is making it", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.claimed) == 1
	})
	enemy := w.another("enemy")()
	stream := e.pools[0].poolInfo.stream()
	eventually(t, "it was given to another one", func() bool {
		consumer, err := enemy.js.Consumer(t.Context(), stream, consumerName)
		if err != nil {
			t.Fatal(err)
		}
		info := consumer.CachedInfo()
		for n := range info.Delivered.Consumer {
			ack := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.0.0", stream, consumerName, info.Delivered.Stream, n+1)
			if err := enemy.nc.Publish(ack, []byte("-NAK")); err != nil {
				t.Fatal(err)
			}
		}
		return info.Delivered.Consumer > 3
	})
	release()
	if outcome := <-done; outcome.Status != experiment.Complete || begun.Load() != 1 {
		t.Errorf("%+v, and the attempt was made %d times", outcome, begun.Load())
	}
	w.check(p, output)
}
