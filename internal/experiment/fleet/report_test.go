package fleet

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// The next attempt begins while the result of the last one travels.
func TestAResultOnItsWayNeedsNoSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(4, 1, "a"), filepath.Join(w.dir, "run")
	dir, e := w.coordinate(p, output, nil)
	var last atomic.Pointer[string] // the attempt before
	var overlaps atomic.Int32
	w.work("w1", 1, nil, func(cfg *WorkerConfig) {
		cfg.Executor = func(_ context.Context, job Job) (Attempts, error) {
			return &fake{sink: job.Sink, do: func(ctx context.Context, cell experiment.Cell, n int) ledger.Record {
				if before := last.Load(); before != nil {
					info, err := e.done.Info(ctx, jetstream.WithSubjectFilter(doneSubject(e.run, "*", token(*before))))
					if err != nil {
						t.Error(err)
					} else if len(info.State.Subjects) == 0 {
						overlaps.Add(1)
					}
				}
				name := cell.RunDir(n)
				last.Store(&name)
				large := make([]byte, 64<<20)
				_, _ = rand.Read(large) // it never fails
				left := job.Sink.AttemptDir(name)
				if err := os.MkdirAll(left, 0o700); err != nil {
					t.Error(err)
				} else if err := os.WriteFile(filepath.Join(left, "large"), large, 0o600); err != nil {
					t.Error(err)
				}
				return verdict(cell)
			}}, nil
		}
	})
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
	if overlaps.Load() == 0 {
		t.Error("every attempt waited until the result of the one before was on the hub")
	}
}
