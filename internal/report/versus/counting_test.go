package versus_test

import (
	"math"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

// twoArms is a directory in which the first arm does what a test says, and the second solves.
func twoArms(tasks, runs int, first func(task, run int) string) versustest.Directory {
	return versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "a", Agent: "claude-code", Model: "m", Does: versustest.Solves},
			{Name: "b", Agent: "codex", Model: "m", Does: versustest.Solves},
		},
		Tasks:     tasks,
		Runs:      runs,
		Workspace: "export",
		Distinct:  true,
		Does: func(task int, arm versustest.Arm, run int) string {
			if arm.Name == "a" {
				return first(task, run)
			}
			return arm.Does
		},
	}
}

func TestCheatingDoesNotRaiseTheBlendedScore(t *testing.T) {
	t.Parallel()
	built := build(t, written(t, twoArms(12, 1, func(task, _ int) string {
		if task < 6 {
			return versustest.Deletes
		}
		return versustest.Solves
	})), options())
	cheater, honest := built.PerAgent[0], built.PerAgent[1]
	if cheater.Disqualified != 6 || cheater.Blended == nil || honest.Blended == nil ||
		math.Abs(*cheater.Blended-*honest.Blended/2) > 1e-9 {
		t.Errorf("6 of 12 runs cheat: blended %v, without cheating %v", value(cheater.Blended), value(honest.Blended))
	}
}

func TestRunsWithoutAVerdictBoundTheBlendedScore(t *testing.T) {
	t.Parallel()
	built := build(t, written(t, twoArms(12, 1, func(task, _ int) string {
		if task < 3 {
			return versustest.NoService
		}
		return versustest.Solves
	})), options())
	broken, whole := built.PerAgent[0], built.PerAgent[1]
	score := *whole.Blended
	if bounds := broken.BlendedBounds; whole.BlendedBounds != nil || bounds == nil || *broken.Blended != score ||
		math.Abs(bounds.Worst-.75*score) > 1e-9 || math.Abs(bounds.Best-(.75*score+.25)) > 1e-9 {
		t.Errorf("3 of 12 runs are missing: blended %v within %+v", value(broken.Blended), bounds)
	}
}

// Even where judges are asked about everything, nobody asks them about runs that are not there or
// that cheated, and a cheater's Pass does not count.
func TestJudgesAreAskedAboutRunsThatCountOnly(t *testing.T) {
	t.Parallel()
	dir := written(t, twoArms(4, 1, func(task, _ int) string {
		return []string{versustest.NoService, versustest.Deletes, versustest.Solves, versustest.Solves}[task]
	}))
	if err := versustest.Judge(t.Context(), dir, options(), 2); err != nil {
		t.Fatal(err)
	}
	built := build(t, dir, options())
	for i := range built.Cells {
		cell := &built.Cells[i]
		if counts := cell.Status == evidence.StatusOK; (len(cell.Verdicts) > 0) != counts {
			t.Errorf("%s of %s is %s and has %d verdicts", cell.Task, cell.Arm, cell.Status, len(cell.Verdicts))
		}
	}
	c := built.PerAgent[0].Corrected[0]
	if c.Dimension != evidence.Correctness || math.Abs(c.ObservedRate-2./3) > 1e-9 || c.N != 3 || c.Facts != 1 ||
		c.Undecided != 1 {
		t.Errorf("2 runs pass, 1 cheats and 1 is missing: %+v", c)
	}
}

// One directory has one pass rate, whichever command reports it: what an agent's own commands print
// is no evidence about the environment, and whoever cheats has failed.
func TestOneDirectoryHasOneRate(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]string{
		"pretends to lack a program": versustest.Pretends,
		"deletes a test":             versustest.Deletes,
	} {
		dir := written(t, twoArms(12, 1, func(task, _ int) string {
			if task%2 == 0 {
				return does
			}
			return versustest.Solves
		}))
		summary := build(t, dir, options()).PerAgent[0]
		loaded, err := results.Load([]string{dir}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		built, err := loaded.Build(t.Context(), results.Auditor{Dialects: options().Dialects}, []int{1}, false)
		if err != nil {
			t.Fatal(err)
		}
		if own := &built.Groups[0]; summary.ExcludedEnv != 0 || summary.NRuns != 12 || summary.PassRate.Est != .5 ||
			own.PassRate.Est != .5 || own.Totals.Disqualified != summary.Disqualified {
			t.Errorf("%s: %d of 12 runs count, %d are excluded, rate %v; fit-benchmark report says %v", name,
				summary.NRuns, summary.ExcludedEnv, summary.PassRate.Est, own.PassRate.Est)
		}
	}
}

func value(number *float64) float64 {
	if number == nil {
		return math.NaN()
	}
	return *number
}
