package versuscli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// runsDir is where run directories are made that nobody named.
const runsDir = "eval"

var runName = lazyregexp.New(`^run-(\d{3,})$`)

// runDirectory is a run directory: where it lies, and how people name it.
type runDirectory struct{ path, shown string }

// directory is the run directory: the one that was named, else the unfinished one of the same plan,
// else the next number.
func (o *runOptions) directory(con *console.Console, plan *experiment.Plan) (runDirectory, error) {
	if o.Output != "" {
		path, err := filepath.Abs(con.Path(o.Output))
		return runDirectory{path, o.Output}, err
	}
	parent, err := filepath.Abs(con.Path(runsDir))
	if err != nil {
		return runDirectory{}, err
	}
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return runDirectory{}, err
	}
	last := 0
	for _, entry := range entries {
		match := runName.FindStringSubmatch(entry.Name())
		if match == nil {
			continue
		}
		number, err := strconv.Atoi(match[1])
		if err != nil {
			continue
		}
		last = max(last, number)
		if unfinished(filepath.Join(parent, entry.Name()), plan, o.RetryErrors()) {
			return runDirectoryOf(parent, entry.Name()), nil
		}
	}
	return runDirectoryOf(parent, fmt.Sprintf("run-%03d", last+1)), nil
}

func runDirectoryOf(parent, name string) runDirectory {
	return runDirectory{filepath.Join(parent, name), runsDir + "/" + name}
}

// unfinished reports whether a directory holds the plan and lacks results of it. Where errors are
// to be tried again, a cell that ended in one lacks its result.
func unfinished(dir string, plan *experiment.Plan, errorsToo bool) bool {
	there, err := experiment.ReadPlan(dir)
	if err != nil || there.ID != plan.ID {
		return false
	}
	contents, err := ledger.ReadFile(filepath.Join(dir, experiment.LedgerFile))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	done := map[ledger.Cell]bool{}
	for i := range contents.Records {
		r := &contents.Records[i]
		if r.Final && (!errorsToo || r.Verdict != ledger.Error) {
			done[ledger.Cell{Arm: r.Arm, TaskID: r.TaskID, RunIndex: r.RunIndex}] = true
		}
	}
	return len(done) < len(there.Cells())
}
