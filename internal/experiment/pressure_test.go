package experiment

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// TestATimeLimitUnderPressureIsTriedAgainAlone: cells that run out of time because the machine is
// overloaded are no verdicts; each is run again with nothing beside it, and that counts.
func TestATimeLimitUnderPressureIsTriedAgainAlone(t *testing.T) {
	var mu sync.Mutex
	running, met := 0, make(chan struct{})
	executor := executorFunc(func(ctx context.Context, _ Cell, attempt int) (ledger.Record, error) {
		mu.Lock()
		if running++; running == 2 && attempt == 1 {
			close(met)
		}
		beside := running
		mu.Unlock()
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		if attempt > 1 {
			if beside != 1 {
				t.Errorf("%d attempts ran beside the one that was to run alone", beside-1)
			}
			return graded(ledger.Pass), nil
		}
		select { // the two of the first round run at the same time
		case <-met:
		case <-ctx.Done():
		case <-time.After(5 * time.Minute):
		}
		r := graded(ledger.Fail)
		r.Outcome, r.Pressure = string(session.OutcomeTimeout), map[string]float64{"cpu": 0.9}
		return r, nil
	})
	path := t.TempDir()
	outcome := runPlan(t, t.Context(), path, planOf(t, 1, 1, "a", "b"), Config{Executor: executor, Concurrency: 2})
	if outcome.Status != Complete {
		t.Fatalf("%+v", outcome)
	}
	again := 0
	for _, r := range recordsOf(t, path) {
		switch {
		case r.Attempt == 1:
			if r.Verdict != ledger.Error || r.ErrorCause != ledger.CausePressure || r.Final || r.Concurrency != 2 {
				t.Errorf("%+v", r)
			}
		case r.Verdict == ledger.Pass && r.Concurrency == 1:
			again++
		}
	}
	if again != 2 {
		t.Errorf("%d cells were tried again alone, want 2", again)
	}
}

// TestATimeLimitWithoutPressureIsAVerdict: an agent that is slow has failed.
func TestATimeLimitWithoutPressureIsAVerdict(t *testing.T) {
	for name, pressure := range map[string]map[string]float64{
		"an idle machine": {"cpu": 0.1}, "a kernel that does not tell": nil,
	} {
		executor := executorFunc(func(context.Context, Cell, int) (ledger.Record, error) {
			r := graded(ledger.Fail)
			r.Outcome, r.Pressure = string(session.OutcomeTimeout), pressure
			return r, nil
		})
		path := t.TempDir()
		runPlan(t, t.Context(), path, planOf(t, 2, 1, "a", "b"), Config{Executor: executor, Concurrency: 2})
		for _, r := range recordsOf(t, path) {
			if r.Verdict != ledger.Fail || !r.Final {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}
