package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/experiment/control"
	"github.com/fit-eval/fit/ledger"
)

// counter counts attempts that run at a time.
type counter struct{ now, most, begun atomic.Int32 }

func (c *counter) enter() (leave func()) {
	now := c.now.Add(1)
	c.begun.Add(1)
	for before := c.most.Load(); now > before && !c.most.CompareAndSwap(before, now); before = c.most.Load() {
	}
	return func() { c.now.Add(-1) }
}

// steered runs an experiment that other processes can steer.
func (w *world) steered(ctx context.Context, dir *experiment.Directory, e *Executor, cfg experiment.Config,
) <-chan experiment.Outcome {
	cfg.Executor, cfg.Places, cfg.Changed, cfg.Steered = e, e.Places, e.Changed(), true
	done := make(chan experiment.Outcome, 1)
	go func() {
		outcome, err := experiment.Run(ctx, dir, cfg)
		if err := errors.Join(err, e.Close(), dir.Close()); err != nil {
			w.t.Error(err)
		}
		done <- outcome
	}()
	return done
}

func ask(t *testing.T, output string, c control.Command) control.Status {
	t.Helper()
	answer, err := control.Ask(t.Context(), output, c)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status
}

// The commands that steer a local experiment steer one on a fleet: at once, and with attempts that
// workers could begin any moment.
func TestCtlOnAFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(12, 2, "a"), filepath.Join(w.dir, "run")
	var count counter
	gate := make(chan struct{})
	cancelled := make(chan string, 1)
	for _, name := range []string{"w1", "w2"} {
		w.work(name, 3, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
			defer count.enter()()
			select {
			case <-gate:
			case <-ctx.Done():
				cancelled <- cell.Name()
			}
			return verdict(cell)
		}, nil)
	}
	dir, e := w.coordinate(p, output, nil)
	done := w.steered(t.Context(), dir, e, experiment.Config{Concurrency: 4})
	eventually(t, 5*time.Second, "four run", func() bool { return count.now.Load() == 4 })
	status := ask(t, output, control.Command{Action: control.Ping})
	if len(status.Running) != 4 || status.Running[0].Where == "" || status.Queued != 20 {
		t.Errorf("running %+v, %d queued", status.Running, status.Queued)
	}

	cell := status.Running[0]
	began := time.Now()
	ask(t, output, control.Command{Action: control.Cancel, Task: cell.Task, Arm: cell.Arm, Run: cell.Run})
	<-cancelled
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("cancel reached the agent after %s", took)
	}
	eventually(t, 5*time.Second, "another runs", func() bool { return count.now.Load() == 4 })

	ask(t, output, control.Command{Action: control.Concurrency, N: 2})
	eventually(t, 2*time.Second, "the limit is 2", func() bool { return e.limitOf(t) == 2 })
	for range 4 {
		gate <- struct{}{}
	}
	eventually(t, 3*time.Second, "two run", func() bool {
		status := ask(t, output, control.Command{Action: control.Ping})
		return status.Done == 4 && len(status.Running) == 2 && count.now.Load() == 2
	})

	ask(t, output, control.Command{Action: control.Pause})
	eventually(t, 2*time.Second, "the pool is on hold", func() bool { return e.limitOf(t) == 0 })
	begun := count.begun.Load()
	gate <- struct{}{}
	gate <- struct{}{}
	eventually(t, 3*time.Second, "none runs", func() bool {
		return ask(t, output, control.Command{Action: control.Ping}).Done == 6
	})
	ask(t, output, control.Command{Action: control.Requeue, Task: cell.Task, Arm: cell.Arm, Run: cell.Run})
	if count.begun.Load() != begun {
		t.Errorf("%d attempts began during the pause", count.begun.Load()-begun)
	}
	if count.most.Load() > 4 {
		t.Errorf("%d ran at a time, at most 4 may", count.most.Load())
	}
	ask(t, output, control.Command{Action: control.Resume})
	close(gate)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}

// limitOf is the limit of the first pool as the hub has it; 0 is on hold.
func (e *Executor) limitOf(t *testing.T) int {
	t.Helper()
	pools, err := e.cfg.Hub.pools(t.Context())
	if err != nil || len(pools) == 0 {
		t.Fatal(err, pools)
	}
	if pools[0].Hold {
		return 0
	}
	consumer, err := e.cfg.Hub.js.Consumer(t.Context(), pools[0].stream(), consumerName)
	if err != nil {
		t.Fatal(err)
	}
	return consumer.CachedInfo().Config.MaxAckPending
}

// An experiment that stops begins nothing more, also where attempts are published.
func TestABrokenExperimentBeginsNothingMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(20, 1, "a"), filepath.Join(w.dir, "run")
	var begun atomic.Int32
	three, stopping := make(chan struct{}), make(chan struct{})
	w.work("w1", 3, func(ctx context.Context, _ experiment.Cell, _ int) ledger.Record {
		wait := three
		switch n := begun.Add(1); {
		case n == 3:
			close(three)
			fallthrough
		case n > 3:
			wait = stopping
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
		return ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorSetup, ErrorMessage: "no such image"}
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	done := w.steered(t.Context(), dir, e, experiment.Config{BreakAfter: 2})
	eventually(t, 5*time.Second, "three run", func() bool { return begun.Load() >= 3 })
	eventually(t, 5*time.Second, "it stops", func() bool {
		return ask(t, output, control.Command{Action: control.Ping}).State == control.Stopping
	})
	eventually(t, 5*time.Second, "the pool is on hold", func() bool { return e.limitOf(t) == 0 })
	close(stopping)
	if outcome := <-done; outcome.Status != experiment.Broken {
		t.Fatalf("%+v", outcome)
	}
	// two more may begin in the places of the first ones, before the coordinator knows of those
	if n := begun.Load(); n > 5 {
		t.Errorf("%d attempts were made although the experiment stopped after the second", n)
	}
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

// A tree that takes longer than the library's default for one request arrives.
func TestASlowTreeArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	big := filepath.Join(w.dir, "big")
	content := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // does not compress, and never fails
	if err := os.WriteFile(big, content, 0o600); err != nil {
		t.Fatal(err)
	}
	hub := w.dial()
	store, err := hub.js.ObjectStore(t.Context(), treesBucket)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := putTree(t.Context(), store, "big", big, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow := newLink(t, hubAddress(t, w.url), func([]byte) { time.Sleep(2 * time.Millisecond) })
	nc := w.dialAt(slow.through(t, w.url)).nc
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(30*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	store, err = js.ObjectStore(ctx, treesBucket)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	if err := getTree(context.WithoutCancel(t.Context()), store, "big", hash, filepath.Join(w.dir, "new")); err != nil {
		t.Error(err)
	}
}

func hubAddress(t *testing.T, url string) string {
	t.Helper()
	join, err := parseJoinURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return join.Address
}
