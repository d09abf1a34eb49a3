package fleet

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

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

// An infrastructure error is retried within its limit, on another worker where there is one.
// Verdicts are not retried.
func TestInfrastructureErrorsPreferAnotherWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(4, 1, "a"), filepath.Join(w.dir, "run")
	var mu sync.Mutex
	by := map[string][]string{}
	for _, name := range []string{"broken", "w2", "w3"} {
		w.work(name, 2, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
			mu.Lock()
			by[cell.TaskID] = append(by[cell.TaskID], name)
			mu.Unlock()
			if name == "broken" || cell.TaskID == "t0" {
				return ledger.Record{
					Verdict:      ledger.Error,
					ErrorClass:   ledger.ErrorSetup,
					ErrorMessage: "no such image for " + cell.TaskID,
				}
			}
			return verdict(cell)
		}, nil)
	}
	dir, e := w.coordinate(p, output, nil)
	eventually(t, "all workers are known", func() bool { return e.Places() > 6 })
	outcome := <-w.steered(t.Context(), dir, e, experiment.Config{BreakAfter: -1})
	if outcome.Status != experiment.Incomplete || outcome.Progress.Errors != 1 {
		t.Fatalf("%+v", outcome)
	}
	for id, names := range by {
		broken := 0
		for _, name := range names {
			if name == "broken" {
				broken++
			}
		}
		switch {
		case broken > 1:
			t.Errorf("%s came to the broken worker again: %v", id, names)
		case id == "t0" && (len(names) != 3 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != 3):
			t.Errorf("t0 was tried by %v, want each worker once", names)
		case id != "t0" && len(names) != 1+broken:
			t.Errorf("%s was tried by %v", id, names)
		}
	}
}
