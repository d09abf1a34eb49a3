package experiment

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/ledger"
)

// sharing is an executor whose attempts share a loopback.
type sharing struct{ executorFunc }

func (sharing) ShareLoopback(string) bool { return true }

// TestArmsOfATaskDoNotShareALoopbackAtTheSameTime: while cells share the machine's loopback, the
// cells of one task take turns, and those of other tasks run beside them.
func TestArmsOfATaskDoNotShareALoopbackAtTheSameTime(t *testing.T) { synctest.Test(t, cellsTakeTurns) }

func cellsTakeTurns(t *testing.T) {
	var mu sync.Mutex
	running, most, all := map[string]int{}, 0, 0
	executor := sharing{func(_ context.Context, cell Cell, _ int) (ledger.Record, error) {
		mu.Lock()
		if running[cell.TaskID]++; running[cell.TaskID] > 1 {
			t.Errorf("%d cells of %s run at the same time", running[cell.TaskID], cell.TaskID)
		}
		all++
		most = max(most, all)
		mu.Unlock()
		time.Sleep(time.Second) // of the test's own clock
		defer func() {
			mu.Lock()
			running[cell.TaskID]--
			all--
			mu.Unlock()
		}()
		return graded(ledger.Pass), nil
	}}
	outcome := runPlan(t, t.Context(), t.TempDir(), planOf(t, 3, 20, "a", "b"),
		Config{Executor: executor, Concurrency: 4})
	if outcome.Status != Complete || most != 3 {
		t.Errorf("%+v, %d at a time", outcome, most)
	}
}
