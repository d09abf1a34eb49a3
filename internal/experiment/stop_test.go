package experiment

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// stoppingPlan is a plan of two arms that stops as soon as they are told apart.
func stoppingPlan(t testing.TB, tasks, runs int, seed uint64) *Plan {
	t.Helper()
	plan := planOf(t, tasks, runs, "a", "b")
	plan.Seed, plan.Stop = seed, &StopRule{Alpha: 0.05}
	if err := plan.Seal(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// answer reads a ledger as it was left and compares its arms.
func answer(t testing.TB, path string) (*report.Report, *report.Comparison) {
	t.Helper()
	contents, err := ledger.ReadFile(filepath.Join(path, LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	built, err := report.Build(report.Input{Records: contents.Records, K: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := report.Compare(&built.Groups[0], &built.Groups[1], report.CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return built, comparison
}

// bAlwaysWins passes every task by the arm b and none by the arm a.
func bAlwaysWins(_ context.Context, cell Cell, _ int) (ledger.Record, error) {
	if cell.Arm == "b" {
		return graded(ledger.Pass), nil
	}
	return graded(ledger.Fail), nil
}

func TestAnExperimentStopsWhenItIsDecidedAndStaysStopped(t *testing.T) {
	for _, runs := range []int{1, 3} {
		path := t.TempDir()
		plan := stoppingPlan(t, 100, runs, 1)
		attempts := 0
		executor := executorFunc(func(ctx context.Context, cell Cell, attempt int) (ledger.Record, error) {
			attempts++
			return bAlwaysWins(ctx, cell, attempt)
		})
		outcome := runPlan(t, t.Context(), path, plan, Config{Executor: executor})
		if outcome.Status != Decided || !strings.Contains(outcome.Reason, "stopped by rule") {
			t.Fatalf("%d runs: %+v", runs, outcome)
		}
		if made := len(recordsOf(t, path)); made < 2*runs*stats.MinClaimTasks || made > 40*runs {
			t.Errorf("%d runs: stopped after %d cells of %d", runs, made, 200*runs)
		}
		before := attempts
		if again := runPlan(t, t.Context(), path, plan, Config{Executor: executor}); again.Status != Decided ||
			attempts != before {
			t.Errorf("%d runs: the next process came to %+v after %d more attempts", runs, again, attempts-before)
		}
		built, comparison := answer(t, path)
		if !built.Sequential.Stopped || comparison.Decision.Claim != stats.Improved ||
			comparison.Decision.Method != stats.MethodEProcess || !comparison.Sequential {
			t.Errorf("%d runs: %+v, claim %s by %s", runs, built.Sequential, comparison.Decision.Claim,
				comparison.Decision.Method)
		}
		for _, delta := range comparison.Tasks {
			if delta.P != nil {
				t.Errorf("task %s has the p-value of a test that allows for no looking", delta.TaskID)
			}
		}
	}
}

// Evidence that may not be claimed stops nothing: the arm b has no verdict where it would have
// failed.
func TestAnExperimentDoesNotStopOnWhatMayNotBeClaimed(t *testing.T) {
	path := t.TempDir()
	plan := stoppingPlan(t, 40, 1, 1)
	lost := map[string]bool{}
	for _, id := range plan.taskOrder()[:4] {
		lost[id] = true
	}
	executor := executorFunc(func(ctx context.Context, cell Cell, attempt int) (ledger.Record, error) {
		if cell.Arm == "b" && lost[cell.TaskID] {
			return ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorProvider}, nil
		}
		return bAlwaysWins(ctx, cell, attempt)
	})
	looks := 0
	claimable := func() (bool, error) {
		looks++
		_, comparison := answer(t, path)
		return comparison.Decision.Claim == stats.Improved, nil
	}
	outcome := runPlan(t, t.Context(), path, plan, Config{Executor: executor, Attempts: 1, Claimable: claimable})
	_, comparison := answer(t, path)
	if made := len(recordsOf(t, path)); looks < 2 || comparison.Decision.Claim == stats.Improved && made == 20 ||
		outcome.Status == Decided && comparison.Decision.Claim != stats.Improved {
		t.Errorf("%s after %d cells and %d looks: %s", outcome.Status, made, looks, comparison.Decision.Sentence)
	}
}

// What the rule has spared is not missing: it must not stand in the way of the claim, nor in the
// report.
func TestWhatTheRuleSparesIsNotMissing(t *testing.T) {
	path := t.TempDir()
	plan := stoppingPlan(t, 100, 2, 1)
	runPlan(t, t.Context(), path, plan, Config{Executor: executorFunc(bAlwaysWins), Concurrency: 7})
	planned := &report.Planned{Arms: []string{"a", "b"}, Runs: map[string][]int{}}
	for _, slot := range plan.Slots() {
		planned.Runs[slot.TaskID] = append(planned.Runs[slot.TaskID], slot.RunIndex)
	}
	built, err := report.Build(report.Input{Records: recordsOf(t, path), Planned: planned, K: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range built.Groups {
		if g.Totals.Missing != 0 || g.Bounds != nil || len(g.Tasks) == 100 {
			t.Errorf("%s: %+v, %d tasks", g.Name, g.Totals, len(g.Tasks))
		}
	}
}

// A cell that takes long must not let the others run on for nothing: what is done out of turn
// counts only when its turn comes.
func TestASlowTaskHoldsTheOthersNearIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		plan := stoppingPlan(t, 200, 1, 1)
		slow := plan.taskOrder()[0]
		executor := executorFunc(func(ctx context.Context, cell Cell, attempt int) (ledger.Record, error) {
			if cell.TaskID == slow {
				time.Sleep(time.Hour) // virtual
			}
			return bAlwaysWins(ctx, cell, attempt)
		})
		outcome := runPlan(t, t.Context(), path, plan, Config{Executor: executor, Concurrency: 4})
		if made := len(recordsOf(t, path)); outcome.Status != Decided || made > 60 {
			t.Errorf("%d cells of 400: %+v", made, outcome)
		}
	})
}

// Processes that are killed at any moment, and cells that end in any order, change nothing about
// the end.
func TestStoppingDependsOnTheLedgerAlone(t *testing.T) {
	ends := map[int]bool{}
	for _, concurrency := range []int{1, 3, 8} {
		path := t.TempDir()
		plan := stoppingPlan(t, 60, 1, 5)
		outcome := Outcome{}
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			left := 9
			executor := executorFunc(func(ctx context.Context, cell Cell, attempt int) (ledger.Record, error) {
				return chance(0.6)(ctx, cell, attempt)
			})
			outcome = runPlan(t, ctx, path, plan,
				Config{Executor: executor, Concurrency: concurrency, Progress: func(Progress) {
					if left--; left == 0 {
						cancel()
					}
				}})
			cancel()
			if outcome.Status != Interrupted {
				break
			}
		}
		if outcome.Status != Decided {
			t.Fatalf("concurrency %d: %+v", concurrency, outcome)
		}
		built, _ := answer(t, path)
		ends[firstCrossing(t, path)] = true
		if built.Sequential.EValue == nil || *built.Sequential.EValue < 20 {
			t.Errorf("concurrency %d: %+v", concurrency, built.Sequential)
		}
	}
	if len(ends) != 1 {
		t.Errorf("the evidence sufficed after different tasks: %v", ends)
	}
}

// firstCrossing is the number of tasks, in the planned order, after which the evidence of a ledger
// suffices.
func firstCrossing(t testing.TB, path string) int {
	t.Helper()
	records := recordsOf(t, path)
	for tasks := stats.MinClaimTasks; ; tasks++ {
		var some []ledger.Record
		for _, r := range records {
			if r.Sequential.Position < tasks {
				some = append(some, r)
			}
		}
		built, err := report.Build(report.Input{Records: some, K: []int{1}})
		if err != nil {
			t.Fatal(err)
		}
		if *built.Sequential.EValue >= 20 {
			return tasks
		}
		if len(some) == len(records) {
			t.Fatalf("e = %v after %d tasks", *built.Sequential.EValue, tasks)
		}
	}
}

// Looking after every task and stopping at the first sign does not make two equal arms different:
// the whole point of the rule. The same peeking with the usual test would claim a difference in
// every eighth experiment.
func TestPeekingMakesNoFalseClaims(t *testing.T) {
	seeds := testenv.Size(150, 12)
	for _, runs := range []int{1, 2} {
		claims := 0
		for seed := range seeds {
			path := t.TempDir()
			runPlan(t, t.Context(), path, stoppingPlan(t, 60, runs, uint64(seed)+1),
				Config{Executor: chance(0), Concurrency: 4})
			if _, comparison := answer(t, path); comparison.Decision.Claim == stats.Improved ||
				comparison.Decision.Claim == stats.Regressed {
				claims++
			}
		}
		rate := float64(claims) / float64(seeds)
		t.Logf("%d runs: %d claims in %d experiments of equal arms", runs, claims, seeds)
		if se := math.Sqrt(rate * (1 - rate) / float64(seeds)); rate-3*se > 0.05 {
			t.Errorf("%d runs: %.1f%% false claims", runs, 100*rate)
		}
	}
}

func TestStoppingEarlyNeedsADesignThatAllowsIt(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"two arms":     func(p *Plan) { p.Arms = p.Arms[:1] },
		"shard":        func(p *Plan) { p.Shard = Shard{I: 1, N: 2} },
		"cluster":      func(p *Plan) { p.Tasks[0].Cluster, p.Tasks[1].Cluster = "repo", "repo" },
		"fewer than":   func(p *Plan) { p.Tasks = p.Tasks[:5] },
		"significance": func(p *Plan) { p.Stop.Alpha = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			plan := stoppingPlan(t, 20, 1, 1)
			change(plan)
			if err := plan.Seal(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
