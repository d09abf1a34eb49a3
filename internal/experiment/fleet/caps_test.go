package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// Two experiments share the cap of a provider by what they want.
func TestSharesOfACap(t *testing.T) {
	t.Parallel()
	pools := []member{
		{key: "x1", demand: 1},
		{key: "x2", demand: 50},
		{key: "y1", demand: 50},
		{key: "z1"},
	}
	for whole := range 20 {
		sum := 0
		for _, p := range pools[:3] {
			sum += shareOf(whole, p.key, pools)
		}
		if sum > whole || whole > 2 && sum < whole {
			t.Errorf("shares of %d are %d together", whole, sum)
		}
	}
	if got := shareOf(11, "x2", pools); got != 5 {
		t.Errorf("got %d", got)
	}
	pools[2].granted, pools[0].running = 8, 2
	if got := room(11, "x2", pools); got != 1 {
		t.Errorf("with 8 granted and 2 running elsewhere, there is room for %d of 11, want 1", got)
	}
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
	done := w.start(dir, e)
	eventually(t, "three run", func() bool { return running.Load() == 3 })
	for range 12 {
		gate <- struct{}{}
	}
	eventually(t, "three run again", func() bool { return len(gate) == 0 && running.Load() == 3 })
	if most.Load() > 3 {
		t.Errorf("%d ran at a time, the cap is 3", most.Load())
	}
	if err := w.dial().SetCap(t.Context(), "model", 6); err != nil {
		t.Fatal(err)
	}
	promptly(t, "six run", func() bool { return running.Load() == 6 })
	if err := w.dial().SetCap(t.Context(), "model", 1); err != nil {
		t.Fatal(err)
	}
	promptly(t, "the limit is 1", func() bool {
		consumer, err := e.cfg.Hub.js.Consumer(t.Context(), e.pools[0].poolInfo.stream(), consumerName)
		return err == nil && consumer.CachedInfo().Config.MaxAckPending == 1
	})
	for range 6 {
		gate <- struct{}{}
	}
	eventually(t, "one runs", func() bool { return len(gate) == 0 && running.Load() == 1 })
	if most.Load() > 6 {
		t.Errorf("%d ran at a time, the cap was 6", most.Load())
	}
	close(gate)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}

// The pools of several arms and experiments keep the cap of a provider together, whatever moves.
func TestTheCapHoldsOverSeveralPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var count counter
	for i := range 3 {
		w.work(fmt.Sprintf("w%d", i), 4, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
			defer count.enter()()
			select {
			case <-time.After(time.Duration(20+cell.Seed%60) * time.Millisecond):
			case <-ctx.Done():
			}
			return verdict(cell)
		}, func(c *WorkerConfig) { c.Labels = []string{"gpu"} })
	}
	if err := w.dial().SetCap(t.Context(), "model", 3); err != nil {
		t.Fatal(err)
	}
	var outcomes []<-chan experiment.Outcome
	for i := range 2 {
		p, output := w.prepared(3, 2, "a", "b"), filepath.Join(w.dir, fmt.Sprintf("run%d", i))
		p.Arms[1].Needs = []string{"gpu"} // a pool of its own
		dir, e := w.coordinate(p, output, nil)
		outcomes = append(outcomes, w.steered(t.Context(), dir, e, experiment.Config{}))
	}
	for _, done := range outcomes {
		if outcome := <-done; outcome.Status != experiment.Complete {
			t.Fatalf("%+v", outcome)
		}
	}
	if count.most.Load() > 3 {
		t.Errorf("%d ran at a time, the cap is 3", count.most.Load())
	}
}
