package fleet

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

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
	}, func(cfg *WorkerConfig) { cfg.Hub = w.dialAt(wire.through(t, w.worker), RoleWorker) })
	var other atomic.Int64
	dir, e := w.coordinate(p, output, func(cfg *Config) { cfg.Lease = 12 * time.Second }) // it ends with 3 s to spare
	done := w.start(dir, e)
	eventually(t, "the worker begins", func() bool { return began.Load() > 0 })
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

// A hub that forgot who has an attempt gives it again, to the same worker too: that one continues
// with it instead of beginning a second one in the same directory.
func TestAnAttemptThatIsGivenAgainGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	var reports atomic.Int32
	wire := newLink(t, hubAddress(t, w.url), func(part []byte) {
		reports.Add(int32(bytes.Count(part, []byte("+WPI\r\n")))) // progress
	})
	var begun atomic.Int32
	gate := make(chan struct{})
	w.work("w1", 2, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
		begun.Add(1)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return verdict(cell)
	}, func(cfg *WorkerConfig) { cfg.Hub = w.dialAt(wire.through(t, w.worker), RoleWorker) })
	dir, e := w.coordinate(p, output, func(cfg *Config) { cfg.Lease = 15 * time.Second })
	done := w.start(dir, e)
	eventually(t, "progress is reported", func() bool { return reports.Load() > 0 })
	pool, hub := e.pools[0], w.dial()
	if err := hub.js.DeleteConsumer(t.Context(), pool.poolInfo.stream(), consumerName); err != nil {
		t.Fatal(err)
	}
	if err := e.makeConsumer(t.Context(), pool, pool.limit); err != nil {
		t.Fatal(err)
	}
	given := func() uint64 {
		consumer, err := hub.js.Consumer(t.Context(), pool.poolInfo.stream(), consumerName)
		if err != nil {
			t.Fatal(err)
		}
		return consumer.CachedInfo().Delivered.Consumer
	}
	eventually(t, "it is given again", func() bool { return given() == 1 })
	before := reports.Load()
	eventually(t, "progress is reported again and again", func() bool { return reports.Load() > before+2 })
	if begun.Load() != 1 || given() != 1 {
		t.Errorf("%d attempts began, and the hub gave it %d times", begun.Load(), given())
	}
	close(gate)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}
