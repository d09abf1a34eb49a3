package benchmarkcli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/report/results"
)

// loaded are results that a command asks about.
type loaded struct{ *results.Results }

// loadResults reads run directories, or directories of shards, that must hold something. What is
// wrong with ledgers that are read all the same is printed, and who signed them where it was not
// the user.
func loadResults(con *console.Console, dirs []string, damagedToo bool, from *foreign.Options) (loaded, error) {
	found, err := readResults(con, dirs, damagedToo, from)
	if err != nil {
		return found, err
	}
	noteSigners(con, found.Results)
	return found, found.needRecords(dirs...)
}

// readResults is loadResults for callers that look at signatures themselves, or need no results.
func readResults(con *console.Console, dirs []string, damagedToo bool, from *foreign.Options) (loaded, error) {
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		paths[i] = con.Path(dir)
		if whole, arm, named := strings.Cut(dir, ":"); named && !exists(paths[i]) && exists(con.Path(whole)) {
			return loaded{}, console.Usagef("%s names the arm %s, and all arms of a directory or file are shown: "+
				"use %s", dir, arm, whole)
		}
		if filepath.Base(dir) == experiment.LedgerFile && isFile(paths[i]) {
			return loaded{}, console.Usagef("%s is a file of a run directory: use %s", dir, filepath.Dir(dir))
		}
	}
	debug.SetGCPercent(tidier)
	found, err := results.Load(paths, damagedToo, from)
	if errors.Is(err, results.ErrNone) {
		err = fmt.Errorf("%w%s", err, meantDirectory(con, dirs))
	}
	if err != nil {
		return loaded{}, classify(err)
	}
	for _, problem := range found.Problems {
		fmt.Fprintf(con.Stderr, "%s: %s\n", problem.Path, problem.Problem)
	}
	return loaded{found}, nil
}

// tidier is how much a command that holds all records grows, in percent, before it looks for memory
// that it no longer needs: a third less memory for a third more time.
const tidier = 25

// meantDirectory asks whether the run directory was meant that one without results is below.
func meantDirectory(con *console.Console, dirs []string) string {
	for _, dir := range dirs {
		if at := con.Path(dir); isFile(filepath.Join(at, "family.yaml")) || isDirectory(filepath.Join(at, "tasks")) {
			return fmt.Sprintf("; %s is a family of tasks: fit benchmark run --family %[1]s measures an agent on it",
				dir)
		}
		if _, err := os.Stat(con.Path(dir)); err != nil && dir == defaultOutput {
			return "; name a directory that fit benchmark run --output has written"
		}
		for above := filepath.Dir(filepath.Clean(dir)); len(above) > 1; above = filepath.Dir(above) {
			switch _, err := os.Stat(con.Path(dir)); {
			case !isFile(filepath.Join(con.Path(above), experiment.LedgerFile)):
			case err != nil && above == filepath.Dir(filepath.Clean(dir)): // an arm, written as a path
				return fmt.Sprintf("; did you mean %s:%s?", above, filepath.Base(dir))
			default:
				return fmt.Sprintf("; did you mean %s?", above)
			}
		}
	}
	return ""
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// classify gives an error its exit code: a directory that is not there and a mistake in a file of
// labels are mistakes in the call.
func classify(err error) error {
	if errors.Is(err, results.ErrNone) || errors.As(err, new(*document.Error)) ||
		errors.As(err, new(*foreign.ChoiceError)) {
		return console.Exit(console.ExitUsage, err)
	}
	return console.Exit(console.ExitIncomplete, err)
}

// needRecords refuses input that holds nothing: an answer about nothing would be taken for a good
// one.
func (all loaded) needRecords(dirs ...string) error {
	switch {
	case len(all.Ledgers) == 0 && len(all.Records) == 0:
		return console.Usagef("%s: no results: there is no %s", strings.Join(dirs, ", "), experiment.LedgerFile)
	case len(all.Records) == 0 && !all.NothingPlanned():
		return console.Exitf(console.ExitIncomplete, "%s: no results yet%s", strings.Join(dirs, ", "),
			strings.Join(append([]string{""}, all.Stopped...), "; "))
	}
	return nil
}

// withLabels takes the labels that the user names in place of the family's.
func (all loaded) withLabels(con *console.Console, path string) error {
	if path == "" {
		return nil
	}
	var err error
	if all.Labels, err = judge.LoadLabels(con.Path(path)); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	return nil
}

// build makes the report of results.
func (all loaded) build(ctx context.Context, auditor results.Auditor, ks []int, detail bool) (*report.Report, error) {
	built, err := all.Build(ctx, auditor, ks, detail)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return built, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
