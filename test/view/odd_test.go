package view

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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

// TestOddDirectoriesHaveTheNumbersOfTheReport: whatever is wrong with a directory, the page has the
// report of the command, and the cells of the grid are its runs.
func TestOddDirectoriesHaveTheNumbersOfTheReport(t *testing.T) {
	t.Parallel()
	top, demo := t.TempDir(), demoDirectory(t)
	for name, write := range odd {
		if err := write(filepath.Join(top, name), demo); err != nil {
			t.Fatal(err)
		}
	}
	g := &guide{asked: askView(t, serve(t, top)), top: top}
	for name := range odd {
		t.Run(name, func(t *testing.T) {
			dir, base := filepath.Join(top, name), "/api/experiments/"+g.id(t, name)
			var page struct{ Report json.RawMessage }
			g.read(t, base, &page)
			same(t, "report", page.Report,
				printed(t, "benchmark", "report", "--input", dir, "--format", "json", "--detail", "compact",
					"--damaged"))
			g.cells(t, base, dir)
		})
	}
}
