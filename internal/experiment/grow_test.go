package experiment

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// Runs, tasks and arms are added to an experiment; verdicts that are there stay.
func TestAnExperimentCanGrow(t *testing.T) {
	path := t.TempDir()
	begun := planOf(t, 3, 2, "a")
	runPlan(t, t.Context(), path, begun, Config{Executor: always(graded(ledger.Fail))})
	before := 6
	for _, step := range []struct {
		what string
		plan *Plan
		more int
	}{
		{"runs", planOf(t, 3, 3, "a"), 3},
		{"tasks", planOf(t, 5, 3, "a"), 6},
		{"arms", planOf(t, 5, 3, "a", "b"), 15},
		{"nothing", planOf(t, 5, 3, "a", "b"), 0},
	} {
		step.plan.Family.Revision = "sha256:of " + step.what // tasks that are added change it
		if step.what == "nothing" {
			step.plan.Family.Revision = "sha256:of arms"
		}
		outcome := runPlan(t, t.Context(), path, step.plan, Config{Executor: always(graded(ledger.Pass))})
		records := recordsOf(t, path)
		if outcome.Status != Complete || len(records) != before+step.more {
			t.Fatalf("%s: %+v, %d records after %d", step.what, outcome, len(records), before)
		}
		before = len(records)
		for i, r := range records {
			if want := map[bool]string{true: ledger.Fail, false: ledger.Pass}[i < 6]; r.Verdict != want ||
				r.Experiment != begun.ID || r.FamilyRevision != begun.Family.Revision {
				t.Errorf("%s: record %d is %s of %s", step.what, i, r.Verdict, r.Experiment)
			}
		}
	}
	plan, err := ReadPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Grown) != 3 || plan.Grown[0].Runs != 2 || plan.Grown[0].Records != 6 || plan.Grown[2].Arms != 1 {
		t.Errorf("%+v", plan.Grown)
	}
	for what, smaller := range map[string]*Plan{
		"runs": planOf(t, 5, 2, "a", "b"), "tasks": planOf(t, 4, 3, "a", "b"),
		"arms": planOf(t, 5, 3, "a"),
	} {
		t.Run(what, func(t *testing.T) {
			var different *DifferentError
			if _, err := OpenDirectory(path, smaller, nil); !errors.As(err, &different) {
				t.Errorf("fewer %s: %v", what, err)
			}
		})
	}
}

// A plan that another version of fit enlarged, or whose secrets were removed, is no changed plan.
func TestOnlyAChangedPlanIsNotKept(t *testing.T) {
	for name, step := range map[string]struct {
		change func(*Plan)
		kept   bool
	}{
		"as it was":              {func(*Plan) {}, true},
		"tasks have more fields": {func(p *Plan) { p.Tasks[0].Repository = "https://example.com/a" }, true},
		"a secret":               {func(p *Plan) { p.Tasks[0].Tags = []string{"secret-of-env"} }, true},
		"another alpha":          {func(p *Plan) { p.Question = &Question{Alpha: 0.5} }, false},
	} {
		path := t.TempDir()
		begun, larger := planOf(t, 3, 2, "a"), planOf(t, 3, 3, "a")
		if name == "a secret" {
			step.change(begun)
			if err := begun.Seal(); err != nil {
				t.Fatal(err)
			}
		}
		redactor := redact.New(redact.Config{Environ: []string{"A_TOKEN=secret-of-env"}})
		runPlan(t, t.Context(), path, begun, Config{Executor: always(graded(ledger.Pass))})
		if err := writePlan(path, begun, redactor); err != nil {
			t.Fatal(err)
		}
		if step.change(larger); step.kept {
			runPlan(t, t.Context(), path, larger, Config{Executor: always(graded(ledger.Pass))})
		} else if err := WritePlan(path, larger); err != nil {
			t.Fatal(err)
		}
		plan, err := ReadPlan(path)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Runs != 3 || plan.Kept() != step.kept {
			t.Errorf("%s: kept %t, %+v", name, plan.Kept(), plan)
		}
	}
}

// Whatever is added, the run says that the report will speak of it.
func TestANoteAboutGrowthSaysWhatTheReportSays(t *testing.T) {
	for what, larger := range map[string]*Plan{
		"runs": planOf(t, 2, 2, "a"), "tasks": planOf(t, 3, 1, "a"), "arms": planOf(t, 2, 1, "a", "b"),
	} {
		path := t.TempDir()
		runPlan(t, t.Context(), path, planOf(t, 2, 1, "a"), Config{Executor: always(graded(ledger.Pass))})
		dir, err := OpenDirectory(path, larger, nil)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(dir.Notes, "\n")
		if !strings.Contains(notes, "verdicts stay, and the report says that its size was changed after looking") {
			t.Errorf("%s: %s", what, notes)
		}
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What stops early, or is split, has an order that growing would change.
func TestSomeExperimentsCannotGrow(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"stops early": func(p *Plan) { p.Stop = &StopRule{Alpha: 0.05} },
		"shard":       func(p *Plan) { p.Shard = Shard{I: 1, N: 2} },
	} {
		t.Run(name, func(t *testing.T) {
			path, plan, larger := t.TempDir(), planOf(t, 12, 2, "a", "b"), planOf(t, 12, 3, "a", "b")
			for _, p := range []*Plan{plan, larger} {
				change(p)
				if err := p.Seal(); err != nil {
					t.Fatal(err)
				}
			}
			runPlan(t, t.Context(), path, plan, Config{Executor: always(graded(ledger.Pass))})
			var different *DifferentError
			if _, err := OpenDirectory(path, larger, nil); !errors.As(err, &different) ||
				!strings.Contains(err.Error(), "runs: 2, now 3") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A directory in which nothing came of an experiment is no obstacle for another one.
func TestADirectoryWithoutAResultCanBePlannedAnew(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, path string, plan *Plan){
		"a failed probe": func(t *testing.T, path string, plan *Plan) {
			dir, err := OpenDirectory(path, plan, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := dir.Close(); err != nil {
				t.Fatal(err)
			}
		},
		"an interrupted first run": func(t *testing.T, path string, plan *Plan) {
			runPlan(t, t.Context(), path, plan, Config{
				Executor: always(failed(ledger.ErrorInterrupted, "stopped")),
				Budgets:  Budgets{Experiment: Budget{Wall: 1}},
			})
			dir, err := OpenDirectory(path, plan, nil)
			if err != nil {
				t.Fatal(err)
			}
			interrupted := failed(ledger.ErrorInterrupted, "stopped")
			interrupted.TaskID, interrupted.Arm, interrupted.Attempt = plan.Tasks[0].ID, plan.Arms[0].Name, 1
			if err := errors.Join(dir.ledger.Append(&interrupted), dir.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			leave(t, path, planOf(t, 2, 1, "a"))
			other := planOf(t, 3, 2, "b")
			if outcome := runPlan(t, t.Context(), path, other,
				Config{Executor: always(graded(ledger.Pass))}); outcome.Status != Complete {
				t.Errorf("%+v", outcome)
			}
			plan, err := ReadPlan(path)
			if err != nil || plan.ID != other.ID || len(plan.Grown) > 0 {
				t.Errorf("%+v %v", plan, err)
			}
			aside, err := filepath.Glob(filepath.Join(path, "abandoned-*", LedgerFile))
			if kept := name != "a failed probe"; err != nil || (len(aside) == 1) != kept {
				t.Errorf("kept aside: %v %v", aside, err)
			}
		})
	}
}

// A number that nobody can mean is refused before anything is made of it.
func TestAPlanIsBounded(t *testing.T) {
	plan := planOf(t, 2, 1)
	for _, runs := range []int{1_000_000_000, 1 << 62, maxCells} {
		plan.Runs = runs
		if err := plan.Seal(); err == nil || !strings.Contains(err.Error(), "cells") {
			t.Errorf("%d runs: %v", runs, err)
		}
	}
}
