package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/ledger"
)

// executorFunc is an executor in this process.
type executorFunc func(ctx context.Context, cell Cell, attempt int) (ledger.Record, error)

func (f executorFunc) Execute(ctx context.Context, cell Cell, attempt int) (ledger.Record, error) {
	return f(ctx, cell, attempt)
}

func graded(verdict string) ledger.Record {
	return ledger.Record{Verdict: verdict, Grade: &ledger.Grade{Verdict: verdict, Healthy: true, GatesPass: true}}
}

func failed(class, message string) ledger.Record {
	return ledger.Record{Verdict: ledger.Error, ErrorClass: class, ErrorMessage: message}
}

// always answers every attempt alike.
func always(record ledger.Record) executorFunc {
	return func(context.Context, Cell, int) (ledger.Record, error) { return record, nil }
}

func planOf(t testing.TB, tasks, runs int, arms ...string) *Plan {
	t.Helper()
	plan := &Plan{Runs: runs, Seed: 1, Family: PlannedFamily{Revision: "sha256:0"}}
	for i := range tasks {
		task := PlannedTask{ID: fmt.Sprintf("task-%03d", i), Visible: fmt.Sprint("v", i), Hidden: "h"}
		plan.Tasks = append(plan.Tasks, task)
	}
	if len(arms) == 0 {
		arms = []string{"default"}
	}
	for _, name := range arms {
		arm := Arm{Name: name, Agent: "builtin"}
		if err := arm.Seal(nil); err != nil {
			t.Fatal(err)
		}
		plan.Arms = append(plan.Arms, PlannedArm{Arm: arm})
	}
	if err := plan.Seal(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// runPlan opens the directory, runs, and closes it again, like one process.
func runPlan(t testing.TB, ctx context.Context, path string, plan *Plan, cfg Config) Outcome {
	t.Helper()
	dir, err := OpenDirectoryWith(path, plan, nil, ledger.Config{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := Run(ctx, dir, cfg)
	if err := errors.Join(err, dir.Close()); err != nil {
		t.Fatal(err)
	}
	return outcome
}

func recordsOf(t testing.TB, path string) []ledger.Record {
	t.Helper()
	contents, err := ledger.ReadFile(filepath.Join(path, LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := contents.Damage(path); err != nil {
		t.Fatal(err)
	}
	return contents.Records
}

func TestEveryCellGetsOneVerdict(t *testing.T) {
	for _, concurrency := range []int{1, 8, 100} {
		path := t.TempDir()
		plan := planOf(t, 4, 3, "before", "after")
		outcome := runPlan(t, t.Context(), path, plan,
			Config{Executor: always(graded(ledger.Pass)), Concurrency: concurrency})
		if outcome.Status != Complete || outcome.Progress.Done != 24 || outcome.Progress.Passed != 24 {
			t.Errorf("concurrency %d: %+v", concurrency, outcome)
		}
		if records := recordsOf(t, path); len(records) != 24 || len(ledger.Last(records)) != 24 {
			t.Errorf("concurrency %d: %d records", concurrency, len(records))
		}
	}
}

func TestConcurrencyIsReachedAndNotExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, high atomic.Int32
		executor := executorFunc(func(ctx context.Context, _ Cell, _ int) (ledger.Record, error) {
			if n := now.Add(1); n > high.Load() {
				high.Store(n)
			}
			defer now.Add(-1)
			time.Sleep(time.Second) // virtual
			return graded(ledger.Pass), nil
		})
		outcome := runPlan(t, t.Context(), t.TempDir(), planOf(t, 5, 5), Config{Executor: executor, Concurrency: 4})
		if outcome.Status != Complete || high.Load() != 4 {
			t.Errorf("status %s, high-water mark %d, want 4", outcome.Status, high.Load())
		}
	})
}

func TestAStalledCellHoldsOneSlotWhileOthersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var others atomic.Int32
		executor := executorFunc(func(ctx context.Context, cell Cell, _ int) (ledger.Record, error) {
			if cell.TaskID == "task-000" {
				time.Sleep(time.Hour)
				if others.Load() != 9 {
					t.Errorf("%d others had finished", others.Load())
				}
				return graded(ledger.Fail), nil
			}
			time.Sleep(time.Second)
			others.Add(1)
			return graded(ledger.Pass), nil
		})
		runPlan(t, t.Context(), t.TempDir(), planOf(t, 10, 1), Config{Executor: executor, Concurrency: 2})
	})
}

func TestTheSameCommandAgainDoesNothingTwice(t *testing.T) {
	path := t.TempDir()
	plan := planOf(t, 3, 2)
	var calls atomic.Int32
	executor := executorFunc(func(context.Context, Cell, int) (ledger.Record, error) {
		calls.Add(1)
		return graded(ledger.Fail), nil
	})
	for range 3 {
		if outcome := runPlan(t, t.Context(), path, plan, Config{Executor: executor}); outcome.Status != Complete ||
			outcome.Progress.Failed != 6 {
			t.Errorf("%+v", outcome)
		}
	}
	if calls.Load() != 6 {
		t.Errorf("%d attempts, want 6", calls.Load())
	}
}

func TestInfrastructureErrorsAreTriedAgainAndVerdictsAreNot(t *testing.T) {
	path := t.TempDir()
	executor := executorFunc(func(_ context.Context, cell Cell, attempt int) (ledger.Record, error) {
		switch {
		case cell.TaskID == "task-000" && attempt < 3:
			return failed(ledger.ErrorSetup, "disk full"), nil
		case cell.TaskID == "task-001":
			return graded(ledger.Fail), nil
		case cell.TaskID == "task-002":
			return ledger.Record{}, errors.New("no idea")
		}
		return graded(ledger.Pass), nil
	})
	outcome := runPlan(t, t.Context(), path, planOf(t, 3, 1), Config{Executor: executor, BreakAfter: -1})
	attempts := map[string][]string{}
	for _, r := range recordsOf(t, path) {
		attempts[r.TaskID] = append(attempts[r.TaskID], fmt.Sprintf("%s %s %v", r.Verdict, r.ErrorClass, r.Final))
	}
	want := map[string][]string{
		"task-000": {"error setup false", "error setup false", "pass  true"},
		"task-001": {"fail  true"},
		"task-002": {"error internal false", "error internal false", "error internal true"},
	}
	if diff := cmp.Diff(want, attempts); diff != "" {
		t.Error(diff)
	}
	if outcome.Status != Incomplete || outcome.Progress.Errors != 1 || outcome.Progress.Retries != 4 {
		t.Errorf("%+v", outcome)
	}
}

func TestCellsThatEndedInErrorsAreTakenUpOnRequest(t *testing.T) {
	path, plan := t.TempDir(), planOf(t, 1, 1)
	runPlan(t, t.Context(), path, plan, Config{Executor: always(failed(ledger.ErrorGrader, "x")), BreakAfter: -1})
	if outcome := runPlan(t, t.Context(), path, plan,
		Config{Executor: always(graded(ledger.Pass))}); outcome.Status != Incomplete {
		t.Errorf("without the flag: %+v", outcome)
	}
	if outcome := runPlan(t, t.Context(), path, plan,
		Config{Executor: always(graded(ledger.Pass)), RetryErrors: true}); outcome.Status != Complete {
		t.Errorf("with it: %+v", outcome)
	}
	if last := ledger.Last(recordsOf(t, path)); len(last) != 1 || last[0].Attempt != 4 ||
		last[0].Verdict != ledger.Pass {
		t.Errorf("%+v", last)
	}
}

func TestTheModelsServiceIsGivenTimeToRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		executor := executorFunc(func(_ context.Context, _ Cell, attempt int) (ledger.Record, error) {
			if attempt < 3 {
				return failed(ledger.ErrorProvider, "overloaded"), nil
			}
			return graded(ledger.Pass), nil
		})
		outcome := runPlan(t, t.Context(), t.TempDir(), planOf(t, 1, 1), Config{Executor: executor})
		if took := time.Since(began); outcome.Status != Complete || took != 3*time.Second {
			t.Errorf("%s after %s, want 1 s and 2 s of patience", outcome.Status, took)
		}
	})
}

func TestEqualErrorsInARowStopTheExperiment(t *testing.T) {
	path, plan := t.TempDir(), planOf(t, 50, 1)
	var calls atomic.Int32
	executor := executorFunc(func(context.Context, Cell, int) (ledger.Record, error) {
		return failed(ledger.ErrorSetup, fmt.Sprintf("no space left, request %d", calls.Add(1))), nil
	})
	outcome := runPlan(t, t.Context(), path, plan, Config{Executor: executor})
	if outcome.Status != Broken || calls.Load() != DefaultBreakAfter ||
		!strings.Contains(outcome.Reason, "no space left") {
		t.Errorf("%d calls, %+v", calls.Load(), outcome)
	}
	if outcome := runPlan(t, t.Context(), path, plan,
		Config{Executor: always(graded(ledger.Pass))}); outcome.Status != Complete {
		t.Errorf("once the world is mended: %+v", outcome)
	}
}

// Errors name what they happened to. That does not make them different.
func TestTheBreakerComparesCausesAndNotMessages(t *testing.T) {
	for name, message := range map[string]func(Cell, int32) string{
		"names and paths": func(c Cell, _ int32) string {
			return fmt.Sprintf("task %s: make /tmp/fit-work-0-ab12cd/%s.%s.%d/work: permission denied", c.TaskID, c.TaskID,
				c.Arm, c.RunIndex)
		},
		"words of every task's own": func(c Cell, n int32) string {
			return strings.Repeat("x", int(n)) + ": no such library"
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, 30, 1, "a", "b")
			for i := range plan.Tasks {
				plan.Tasks[i].ID = fmt.Sprintf("%c-fix-the-%c", 'a'+i%26, 'z'-i%26)
				plan.Tasks[i].ID += strings.Repeat("s", i/26)
			}
			if err := plan.Seal(); err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int32
			outcome := runPlan(t, t.Context(), t.TempDir(), plan, Config{Executor: executorFunc(
				func(_ context.Context, c Cell, _ int) (ledger.Record, error) {
					return failed(ledger.ErrorSetup, message(c, calls.Add(1))), nil
				})})
			if outcome.Status != Broken || calls.Load() > alike*DefaultBreakAfter {
				t.Errorf("%d calls, %+v", calls.Load(), outcome)
			}
			if name == "names and paths" && calls.Load() != DefaultBreakAfter {
				t.Errorf("%d calls for one cause", calls.Load())
			}
		})
	}
}

func TestAFullDiskStopsAtOnceAndCanBeContinued(t *testing.T) {
	path, plan := t.TempDir(), planOf(t, 5, 1)
	outcome := runPlan(t, t.Context(), path, plan,
		Config{Executor: always(failed(ledger.ErrorResources, "the disk is nearly full"))})
	if outcome.Status != Broken || len(recordsOf(t, path)) != 1 || recordsOf(t, path)[0].Final {
		t.Errorf("%+v %+v", outcome, recordsOf(t, path))
	}
	if outcome := runPlan(t, t.Context(), path, plan,
		Config{Executor: always(graded(ledger.Pass))}); outcome.Status != Complete {
		t.Errorf("with room again: %+v", outcome)
	}
}

func TestWrongCredentialsStopAtOnce(t *testing.T) {
	path, plan := t.TempDir(), planOf(t, 50, 1)
	outcome := runPlan(t, t.Context(), path, plan, Config{Executor: always(failed(ledger.ErrorAuth, "401"))})
	if outcome.Status != Broken || len(recordsOf(t, path)) != 1 {
		t.Errorf("%+v", outcome)
	}
}

func TestAPanicOfTheExecutorIsOneCellsTrouble(t *testing.T) {
	executor := executorFunc(func(_ context.Context, cell Cell, _ int) (ledger.Record, error) {
		if cell.TaskID == "task-001" {
			panic("boom")
		}
		return graded(ledger.Pass), nil
	})
	outcome := runPlan(t, t.Context(), t.TempDir(), planOf(t, 3, 1), Config{Executor: executor})
	if outcome.Status != Incomplete || outcome.Progress.Passed != 2 || outcome.Progress.Errors != 1 {
		t.Errorf("%+v", outcome)
	}
}

func TestNonsenseOfTheExecutorIsRecordedAsAnError(t *testing.T) {
	path := t.TempDir()
	runPlan(t, t.Context(), path, planOf(t, 1, 1), Config{Executor: always(ledger.Record{Verdict: ledger.Pass})})
	for _, r := range recordsOf(t, path) {
		if r.Verdict != ledger.Error || !strings.Contains(r.ErrorMessage, "needs a grade") {
			t.Errorf("%+v", r)
		}
	}
}

// A record with an impossible measurement keeps its verdict, and says what was left out.
func TestAnInvalidRecordIsKeptWithWhatIsWrong(t *testing.T) {
	path := t.TempDir()
	bad := graded(ledger.Pass)
	cost := math.NaN()
	bad.DurationMs, bad.CostUSD, bad.Submission = -3_600_000, &cost, "The answer is written."
	outcome := runPlan(t, t.Context(), path, planOf(t, 1, 1), Config{Executor: always(bad)})
	records := recordsOf(t, path)
	if outcome.Status != Complete || len(records) != 1 {
		t.Fatalf("%+v %+v", outcome, records)
	}
	r := records[0]
	if r.Verdict != ledger.Pass || r.Submission == "" || r.CostUSD != nil || len(r.Invalid) != 2 ||
		!strings.Contains(r.Invalid[0], "durationMs") {
		t.Errorf("%+v", r)
	}
}

// Errors that an agent may have forged stay with the cell, also when a retry gets a verdict.
func TestErrorsThatMayBeForgedStayWithTheCell(t *testing.T) {
	path, plan := t.TempDir(), planOf(t, 1, 1)
	forged := failed(ledger.ErrorProvider, "529 overloaded")
	forged.Unverified = 1
	executor := executorFunc(func(_ context.Context, _ Cell, attempt int) (ledger.Record, error) {
		if attempt < 3 {
			return forged, nil
		}
		return graded(ledger.Pass), nil
	})
	none := func(string, int) time.Duration { return 0 }
	runPlan(t, t.Context(), path, plan, Config{Executor: executor, Attempts: 2, Backoff: none})
	runPlan(t, t.Context(), path, plan, Config{Executor: executor, Attempts: 2, Backoff: none, RetryErrors: true})
	records := recordsOf(t, path)
	if last := records[len(records)-1]; len(records) != 3 || last.Verdict != ledger.Pass || last.Unverified != 2 {
		t.Errorf("%+v", records)
	}
}

func TestASignalDrainsThenInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, plan := t.TempDir(), planOf(t, 10, 1)
		ctx, stop := context.WithCancel(t.Context())
		executor := executorFunc(func(ctx context.Context, cell Cell, _ int) (ledger.Record, error) {
			if cell.TaskID == "task-000" {
				time.AfterFunc(time.Second, stop)
			}
			select {
			case <-time.After(map[bool]time.Duration{
				true:  5 * time.Second,
				false: time.Hour,
			}[cell.TaskID == "task-000"]):
				return graded(ledger.Pass), nil
			case <-ctx.Done():
				return ledger.Record{}, ctx.Err()
			}
		})
		outcome := runPlan(t, ctx, path, plan, Config{Executor: executor, Concurrency: 2, Drain: 10 * time.Second})
		if outcome.Status != Interrupted {
			t.Errorf("%+v", outcome)
		}
		var ends []string
		for _, r := range recordsOf(t, path) {
			ends = append(ends, r.TaskID+" "+r.Verdict+" "+r.ErrorClass)
		}
		slices.Sort(ends)
		if diff := cmp.Diff([]string{"task-000 pass ", "task-001 error interrupted"}, ends); diff != "" {
			t.Error(diff)
		}
		outcome = runPlan(t, t.Context(), path, plan, Config{Executor: always(graded(ledger.Pass))})
		if outcome.Status != Complete || len(recordsOf(t, path)) != 11 {
			t.Errorf("the same command again: %+v", outcome)
		}
	})
}

func TestAttemptsThatDiedWithTheirProcessAreRecorded(t *testing.T) {
	path, plan := t.TempDir(), planOf(t, 2, 1)
	dir, err := OpenDirectory(path, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A process that is killed leaves a line in the journal and nothing else.
	if err := dir.journal.start(start{Arm: "default", TaskID: "task-000", Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if outcome := runPlan(t, t.Context(), path, plan,
		Config{Executor: always(graded(ledger.Pass))}); outcome.Status != Complete {
		t.Errorf("%+v", outcome)
	}
	records := recordsOf(t, path)
	if len(records) != 3 || records[0].ErrorClass != ledger.ErrorInterrupted || records[0].Final {
		t.Errorf("%+v", records)
	}
	for _, r := range ledger.Last(records) {
		if r.Verdict != ledger.Pass {
			t.Errorf("%s: %s", r.Key(), r.Verdict)
		}
	}
}

func TestADirectoryBelongsToOneProcessAndOneExperiment(t *testing.T) {
	path, plan := t.TempDir(), planOf(t, 2, 2, "before", "after")
	dir, err := OpenDirectory(path, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDirectory(path, plan, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("second process: %v", err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	runPlan(t, t.Context(), path, plan, Config{Executor: always(graded(ledger.Pass))})
	other := planOf(t, 3, 5, "before", "afterwards")
	other.Tasks[0].Hidden = "changed"
	other.Arms[0].Hash = "sha256:changed"
	if err := other.Seal(); err != nil {
		t.Fatal(err)
	}
	_, err = OpenDirectory(path, other, nil)
	var different *DifferentError
	if !errors.As(err, &different) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"runs: 2, now 5", "task task-000: its hidden part", "task task-002: new",
		"arm after: no longer there", "arm afterwards: new", "arm before:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told in %v", want, err)
		}
	}
}

func TestResultsOfUnknownOriginAreRefused(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, LedgerFile), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDirectory(path, planOf(t, 1, 1), nil); err == nil ||
		!strings.Contains(err.Error(), "cannot be traced to a plan") {
		t.Errorf("got %v", err)
	}
}

func TestShardsPartitionTheGrid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := planOf(t, rapid.IntRange(1, 6).Draw(rt, "tasks"), rapid.IntRange(1, 6).Draw(rt, "runs"), "a", "b")
		n := rapid.IntRange(1, 40).Draw(rt, "shards")
		seen := map[Cell]int{}
		for i := 1; i <= n; i++ {
			shard, err := ParseShard(fmt.Sprintf("%d/%d", i, n))
			if err != nil {
				rt.Fatal(err)
			}
			plan.Shard = shard
			for _, cell := range plan.Cells() {
				seen[cell]++
			}
		}
		plan.Shard = Shard{}
		whole := plan.Cells()
		if len(seen) != len(whole) {
			rt.Fatalf("%d cells in shards, %d in all", len(seen), len(whole))
		}
		for _, cell := range whole {
			if seen[cell] != 1 {
				rt.Errorf("%+v is in %d shards", cell, seen[cell])
			}
		}
	})
}

func TestEveryShardTouchesEveryTaskWhenThereAreAsManyAsRuns(t *testing.T) {
	plan := planOf(t, 4, 3)
	for i := 1; i <= 3; i++ {
		tasks := map[string]bool{}
		for _, slot := range (Shard{I: i, N: 3}).Of(plan.Slots()) {
			tasks[slot.TaskID] = true
		}
		if len(tasks) != 4 {
			t.Errorf("shard %d/3 touches %d tasks", i, len(tasks))
		}
	}
}

func TestShardForms(t *testing.T) {
	for text, want := range map[string]Shard{"": {}, "1/1": {}, "2/3": {2, 3}} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseShard(" " + text + " "); err != nil || got != want {
				t.Errorf("%v %v", got, err)
			}
		})
	}
	for _, text := range []string{"0/3", "4/3", "1", "1/", "/2", "a/b", "1/0", "-1/2", "1.5/2", "1/2/3"} {
		if _, err := ParseShard(text); err == nil {
			t.Error("it is accepted")
		}
	}
}

func TestShardsTogetherAreTheWholeExperiment(t *testing.T) {
	var shards [][]ledger.Record
	executor := executorFunc(func(_ context.Context, cell Cell, _ int) (ledger.Record, error) {
		return graded(map[bool]string{true: ledger.Pass, false: ledger.Fail}[cell.Seed%2 == 0]), nil
	})
	verdicts := func(records []ledger.Record) map[ledger.Cell]string {
		m := map[ledger.Cell]string{}
		for _, r := range records {
			m[r.Cell()] = r.Verdict
		}
		return m
	}
	for i := 1; i <= 3; i++ {
		plan := planOf(t, 4, 5, "a", "b")
		plan.Shard = Shard{I: i, N: 3}
		path := t.TempDir()
		runPlan(t, t.Context(), path, plan, Config{Executor: executor, Concurrency: 3})
		shards = append(shards, recordsOf(t, path))
	}
	merged, err := ledger.Merge(shards...)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	runPlan(t, t.Context(), path, planOf(t, 4, 5, "a", "b"), Config{Executor: executor})
	if diff := cmp.Diff(verdicts(recordsOf(t, path)), verdicts(merged)); diff != "" {
		t.Error(diff)
	}
}

func TestAnEmptyShardHasAnEmptyLedger(t *testing.T) {
	plan := planOf(t, 1, 2)
	plan.Shard = Shard{I: 50, N: 50}
	path := t.TempDir()
	outcome := runPlan(t, t.Context(), path, plan, Config{Executor: always(graded(ledger.Pass))})
	if outcome.Status != Complete || outcome.Progress.Total != 0 || len(recordsOf(t, path)) != 0 {
		t.Errorf("%+v", outcome)
	}
}

func TestArmsAreInterleaved(t *testing.T) {
	plan := planOf(t, 10, 4, "a", "b")
	cells := plan.Cells()
	firstA := 0
	for i := 0; i < len(cells); i += 2 {
		if cells[i].TaskID != cells[i+1].TaskID || cells[i].RunIndex != cells[i+1].RunIndex {
			t.Fatalf("cells %d and %d are not of one slot", i, i+1)
		}
		if cells[i].Arm == "a" {
			firstA++
		}
	}
	if firstA < 10 || firstA > 30 {
		t.Errorf("arm a goes first in %d of 40 slots", firstA)
	}
	if cells[0].RunIndex != 0 || cells[19].RunIndex != 0 || cells[20].RunIndex != 1 {
		t.Error("first repetitions of all tasks come first")
	}
	if !slices.Equal(cells, plan.Cells()) {
		t.Error("the order is not deterministic")
	}
}

// An arm whose attempts have taken its time together starts no more, in later processes neither;
// the other arm goes on.
func TestTheTimeOfAnArmIsBounded(t *testing.T) {
	executor := executorFunc(func(_ context.Context, cell Cell, _ int) (ledger.Record, error) {
		r := graded(ledger.Pass)
		r.DurationMs = 100
		if cell.Arm == "slow" {
			r.DurationMs = 1000
		}
		return r, nil
	})
	path, plan := t.TempDir(), planOf(t, 10, 1, "slow", "quick")
	budgets := Budgets{Arm: Budget{Wall: 2500 * time.Millisecond}}
	for range 2 {
		outcome := runPlan(t, t.Context(), path, plan, Config{Executor: executor, Budgets: budgets})
		count := map[string]int{}
		for _, r := range recordsOf(t, path) {
			count[r.Arm]++
		}
		if outcome.Status != OverBudget || count["slow"] != 3 || count["quick"] != 10 ||
			!strings.HasPrefix(outcome.Reason, "the time of arm slow of 2.5s is used up") {
			t.Errorf("%v: %+v", count, outcome)
		}
		last, err := ReadProcess(path)
		if err != nil || *last != outcome.Process || last.Budgets != budgets ||
			!strings.HasPrefix(last.Why(), "stopped by budget: the time of arm slow") {
			t.Errorf("the directory says of the process that ended: %+v, %v", last, err)
		}
	}
	budgets = plan.Sufficient(budgets, recordsOf(t, path), nil)
	if outcome := runPlan(t, t.Context(), path, plan,
		Config{Executor: executor, Budgets: budgets}); outcome.Status != Complete {
		t.Errorf("with %v: %+v", budgets, outcome)
	}
}

func TestBudgetsStopBeforeTheyAreExceeded(t *testing.T) {
	spend := func(usd float64, tokens int64) executorFunc {
		return func(context.Context, Cell, int) (ledger.Record, error) {
			r := graded(ledger.Pass)
			r.CostUSD, r.Tokens = &usd, &ledger.UsageJSON{InputTokens: tokens}
			return r, nil
		}
	}
	for name, test := range map[string]struct {
		budgets Budgets
		cells   int
	}{
		"dollars of the experiment": {Budgets{Experiment: Budget{USD: 1.05}}, 10},
		"dollars of an arm":         {Budgets{Arm: Budget{USD: 0.35}}, 6},
		"tokens of the experiment":  {Budgets{Experiment: Budget{Tokens: 700}}, 7},
		"tokens of an arm":          {Budgets{Arm: Budget{Tokens: 200}}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			path, plan := t.TempDir(), planOf(t, 20, 1, "a", "b")
			outcome := runPlan(t, t.Context(), path, plan,
				Config{Executor: spend(0.1, 100), Concurrency: 8, Budgets: test.budgets})
			if got := len(recordsOf(t, path)); outcome.Status != OverBudget || got != test.cells {
				t.Errorf("%d cells, want %d: %+v", got, test.cells, outcome)
			}
			larger := plan.Sufficient(test.budgets, recordsOf(t, path), nil)
			if larger.Experiment.USD > 4.4 || larger.Arm.USD > 2.2 || larger.Experiment.Tokens > 4400 ||
				larger.Arm.Tokens > 2200 {
				t.Errorf("20 cells of $0.10 and 100 tokens in each arm get %v", larger)
			}
			if outcome := runPlan(t, t.Context(), path, plan, Config{
				Executor:    spend(0.1, 100),
				Concurrency: 8,
				Budgets:     larger,
			}); outcome.Status != Complete {
				t.Errorf("with %v: %+v", larger, outcome)
			}
		})
	}
}

func TestTimeIsABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		executor := executorFunc(func(context.Context, Cell, int) (ledger.Record, error) {
			time.Sleep(10 * time.Second)
			return graded(ledger.Pass), nil
		})
		outcome := runPlan(t, t.Context(), t.TempDir(), planOf(t, 20, 1),
			Config{Executor: executor, Budgets: Budgets{Experiment: Budget{Wall: time.Minute}}})
		if outcome.Status != OverBudget || outcome.Progress.Done != 6 {
			t.Errorf("%+v", outcome)
		}
	})
}

func TestADollarBudgetNeedsPrices(t *testing.T) {
	unpriced := graded(ledger.Pass)
	unpriced.Tokens = &ledger.UsageJSON{InputTokens: 10}
	path, plan, budgets := t.TempDir(), planOf(t, 20, 1), Budgets{Experiment: Budget{USD: 5}}
	outcome := runPlan(t, t.Context(), path, plan, Config{Executor: always(unpriced), Budgets: budgets})
	if outcome.Status != OverBudget || !strings.Contains(outcome.Reason, "price") {
		t.Errorf("%+v", outcome)
	}
	budgets = plan.Sufficient(budgets, recordsOf(t, path), nil)
	outcome = runPlan(t, t.Context(), path, plan, Config{Executor: always(unpriced), Budgets: budgets})
	if outcome.Status != Complete || budgets.Experiment.Tokens == 0 {
		t.Errorf("with %v: %+v", budgets, outcome)
	}
}

func TestProgressAddsUp(t *testing.T) {
	var mu sync.Mutex
	var last Progress
	executor := executorFunc(func(_ context.Context, cell Cell, _ int) (ledger.Record, error) {
		cost := 0.5
		r := graded(map[bool]string{true: ledger.Pass, false: ledger.Fail}[cell.RunIndex == 0])
		r.CostUSD = &cost
		return r, nil
	})
	runPlan(t, t.Context(), t.TempDir(), planOf(t, 5, 2),
		Config{Executor: executor, Concurrency: 4, Progress: func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			last = p
		}})
	if last.Done != 10 || last.Passed != 5 || last.Failed != 5 || last.CostUSD != 5 || last.Rate == nil ||
		last.Rate.Est != 0.5 || !last.Rate.Contains(0.5) {
		t.Errorf("%+v", last)
	}
}
