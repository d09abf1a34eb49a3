package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

// odd are directories whose data is not as it should be.
var odd = map[string]func(dir, demo string) error{
	"one arm": func(dir, _ string) error { return writeContest(dir, 2, versustest.Solves) },
	"three": func(dir, _ string) error {
		return writeContest(dir, 2, versustest.Solves, "gives-up", versustest.Mistakes)
	},
	"errors":    func(dir, _ string) error { return writeContest(dir, 2, versustest.Solves, versustest.NoService) },
	"no result": func(dir, _ string) error { return writeContest(dir, 1, versustest.NoService, versustest.NoService) },
	"cheats":    func(dir, _ string) error { return writeContest(dir, 2, versustest.Solves, versustest.Deletes) },
	"retried":   func(dir, _ string) error { return writeContest(dir, 2, versustest.Retried, versustest.Solves) },
	"stopped":   writeStopped,
	"torn": func(dir, demo string) error {
		return changed(dir, demo, func(results string) string { return results + `{"torn` })
	},
	"altered": func(dir, demo string) error {
		return changed(dir, demo, func(results string) string {
			return strings.Replace(results, `"verdict":"fail"`, `"verdict":"pass"`, 1)
		})
	},
	"without a plan": func(dir, demo string) error {
		return errors.Join(os.CopyFS(dir, os.DirFS(demo)), os.Remove(filepath.Join(dir, experiment.PlanFile)))
	},
	"without files": func(dir, demo string) error {
		return errors.Join(os.CopyFS(dir, os.DirFS(demo)), os.RemoveAll(filepath.Join(dir, experiment.RunsDir)))
	},
}

// changed copies the demo with another ledger.
func changed(dir, demo string, change func(string) string) error {
	path := filepath.Join(dir, experiment.LedgerFile)
	if err := os.CopyFS(dir, os.DirFS(demo)); err != nil {
		return err
	}
	results, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(change(string(results))), 0o600)
}

// outcomes are the words of the page for the outcomes of a run.
var outcomes = map[string]string{"pass": "passed", "fail": "failed", "error": "error, no verdict"}

// TestOddDirectoriesHaveTheNumbersOfTheReport: whatever is wrong with a directory, the page has the
// report of the command, and the browser shows what it prints: the rate of each arm, and the
// outcome, cost, turns and time of each run. The page is accessible and fits a phone.
func TestOddDirectoriesHaveTheNumbersOfTheReport(t *testing.T) {
	t.Parallel()
	top, demo := t.TempDir(), demoDirectory(t)
	for name, write := range odd {
		if err := write(filepath.Join(top, name), demo); err != nil {
			t.Fatal(err)
		}
	}
	address := serve(t, top)
	g := &guide{asked: askView(t, address), top: top}
	var spots []spot
	for name := range odd {
		spots = append(spots, spot{name, "#/x/" + g.id(t, name), "table.grid tbody tr"})
	}
	// An experiment of one arm has no differences to draw, which its console calls an error.
	pages := look(t, "meet", map[string]any{"url": address, "allow": []string{"409"}}, spots)
	for name := range odd {
		t.Run(name, func(t *testing.T) {
			page, dir, base := pages[name], filepath.Join(top, name), "/api/experiments/"+g.id(t, name)
			var whole struct{ Report json.RawMessage }
			g.read(t, base, &whole)
			same(t, "report", whole.Report, printed(t, "benchmark", "report", "--input", dir, "--format", "json",
				"--detail", "compact", "--damaged"))
			g.cells(t, base, dir)
			var report struct{ Groups []oddGroup }
			answerOf(t, &report, "benchmark", "report", "--input", dir, "--format", "json", "--detail", "full",
				"--damaged")
			for _, group := range report.Groups {
				if group.PassRate != nil {
					page.says(t, fmt.Sprintf("%s %d of %s", percent(*group.PassRate.Est), group.Totals.Passed,
						counted(group.Totals.Runs, "run")))
				}
				for outcome, facts := range group.marks() {
					if !slices.ContainsFunc(page.Hovers, func(hover string) bool {
						return strings.HasPrefix(hover, outcome) && strings.Contains(hover+" ", facts+" ")
					}) {
						t.Errorf("no mark of the grid says %q and %q", outcome, facts)
					}
				}
			}
		})
	}
}

// oddGroup is what report prints of an arm, run by run.
type oddGroup struct {
	group
	Tasks []struct {
		TaskID string
		Runs   []struct {
			RunIndex, Turns int
			Verdict         string
			CostUsd         *float64
			DurationMs      float64
		}
	}
}

// marks are what the marks of an arm's runs say: the outcome, and what it took.
func (g *oddGroup) marks() map[string]string {
	said := map[string]string{}
	for _, task := range g.Tasks {
		for _, run := range task.Runs {
			outcome := fmt.Sprintf("%s, %s, run %d: %s", task.TaskID, g.Provenance.Arm, run.RunIndex,
				outcomes[run.Verdict])
			said[outcome] = fmt.Sprintf(" · %s · %s · %s", money(run.CostUsd), counted(run.Turns, "turn"),
				elapsed(run.DurationMs))
		}
	}
	return said
}
