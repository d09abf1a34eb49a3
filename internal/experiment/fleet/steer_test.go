package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/control"
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
	eventually(t, "four run", func() bool { return count.now.Load() == 4 })
	var status control.Status
	eventually(t, "four are shown with their workers", func() bool {
		status = ask(t, output, control.Command{Action: control.Ping})
		return len(status.Running) == 4 && status.Queued == 20 &&
			!slices.ContainsFunc(status.Running, func(c control.Cell) bool { return c.Where == "" })
	})

	cell := status.Running[0]
	ask(t, output, control.Command{Action: control.Cancel, Task: cell.Task, Arm: cell.Arm, Run: cell.Run})
	promptly(t, "cancel has reached the agent", func() bool { return len(cancelled) == 1 })
	eventually(t, "another runs", func() bool { return count.now.Load() == 4 })

	ask(t, output, control.Command{Action: control.Concurrency, N: 2})
	promptly(t, "the limit is 2", func() bool { return e.limitOf(t) == 2 })
	for range 4 {
		gate <- struct{}{}
	}
	eventually(t, "two run", func() bool {
		status := ask(t, output, control.Command{Action: control.Ping})
		return status.Done == 4 && len(status.Running) == 2 && count.now.Load() == 2
	})

	ask(t, output, control.Command{Action: control.Pause})
	promptly(t, "the pool is on hold", func() bool { return e.limitOf(t) == 0 })
	begun := count.begun.Load()
	gate <- struct{}{}
	gate <- struct{}{}
	eventually(t, "none runs", func() bool {
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
	eventually(t, "three run", func() bool { return begun.Load() >= 3 })
	eventually(t, "it stops", func() bool {
		return ask(t, output, control.Command{Action: control.Ping}).State == control.Stopping
	})
	eventually(t, "the pool is on hold", func() bool { return e.limitOf(t) == 0 })
	before := begun.Load() // some took the places of attempts that were withdrawn
	close(stopping)
	if outcome := <-done; outcome.Status != experiment.Broken {
		t.Fatalf("%+v", outcome)
	}
	if more := begun.Load() - before; more > 3 { // one in each place, which had looked just before the hold
		t.Errorf("%d attempts began although the pool was on hold", more)
	}
}

// A budget that is set while an experiment runs on a fleet ends it there too.
func TestABudgetOnAFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(10, 2, "a"), filepath.Join(w.dir, "run")
	gate := make(chan struct{})
	var count counter
	w.work("w1", 2, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
		defer count.enter()()
		select {
		case <-gate:
		case <-ctx.Done():
		}
		r, usd := verdict(cell), 1.0
		r.CostUSD = &usd
		return r
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	done := w.steered(t.Context(), dir, e, experiment.Config{})
	gate <- struct{}{}
	gate <- struct{}{}
	eventually(t, "two are done", func() bool {
		return ask(t, output, control.Command{Action: control.Ping}).Done == 2
	})
	status := ask(t, output, control.Command{Action: control.BudgetUSD, USD: new(4.0)})
	if status.BudgetUSD == nil || *status.BudgetUSD != 4 {
		t.Errorf("%+v", status)
	}
	close(gate)
	if outcome := <-done; outcome.Status != experiment.OverBudget {
		t.Fatalf("%+v", outcome)
	}
	// two were done when the budget was set, and six were published: what began is not stopped
	if n := count.begun.Load(); n > 8 {
		t.Errorf("%d attempts of a dollar began with a budget of 4", n)
	}
}

// Stop means stop: a running agent ends within two seconds, and its attempt is recorded.
func TestCancelReachesTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(3, 1, "a"), filepath.Join(w.dir, "run")
	var running atomic.Int32
	w.work("w1", 2, func(ctx context.Context, cell experiment.Cell, _ int) ledger.Record {
		running.Add(1)
		<-ctx.Done()
		running.Add(-1)
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
	eventually(t, "two run", func() bool { return running.Load() == 2 })
	cancel()
	promptly(t, "the agents have ended", func() bool { return running.Load() == 0 })
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

// Only the coordinator of an attempt can cancel it: the ticket proves who asks.
func TestOnlyItsOwnCoordinatorCancels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	begun, gate := make(chan struct{}), make(chan struct{})
	w.work("w1", 1, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		close(begun)
		<-gate
		return verdict(cell)
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	done := w.steered(t.Context(), dir, e, experiment.Config{})
	<-begun
	name := p.Plan.Cells()[0].RunDir(1)
	other := w.dial()
	for _, proof := range []string{"", cancelProof("guessed"), ticketOf("another", name)} {
		content, err := json.Marshal(cancellation{Name: name, Proof: proof})
		if err == nil {
			err = other.nc.Publish(cancelSubject(e.run), content)
		}
		if err = errors.Join(err, other.nc.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	// what was published before the worker's next announcement has reached it
	eventually(t, "the worker has announced itself", func() bool {
		workers, err := other.Workers(t.Context())
		return err == nil && len(workers) == 1 && len(workers[0].Running) == 1
	})
	close(gate)
	if outcome := <-done; outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	if records := w.check(p, output); len(records) != 1 {
		t.Errorf("%d records", len(records))
	}
}

// A worker that says of every attempt that it was interrupted does not have it repeated, and paid,
// without end.
func TestInterruptionsThatNobodyAskedForAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	var made atomic.Int32
	w.work("w1", 1, func(context.Context, experiment.Cell, int) ledger.Record {
		made.Add(1)
		return ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorInterrupted}
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	outcome := <-w.steered(t.Context(), dir, e, experiment.Config{Attempts: 1})
	if made.Load() > maxInterrupted+1 || outcome.Status == experiment.Complete && made.Load() == 0 {
		t.Errorf("%d attempts, %+v", made.Load(), outcome)
	}
}
