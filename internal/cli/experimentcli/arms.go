package experimentcli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// ReadArms reads the file of --arms or, without one, the values of --arm.
func ReadArms(con *console.Console, file string, texts []string) ([]experiment.Arm, error) {
	if file != "" {
		arms, err := experiment.LoadArms(con.Path(file))
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(file, "=") {
			return nil, fmt.Errorf("--arms must name a file; an arm is written as --arm %s", file)
		}
		return arms, err
	}
	var arms []experiment.Arm
	for _, text := range texts {
		arm, err := experiment.ParseArm(text, con.Path)
		if err != nil {
			return nil, err
		}
		arms = append(arms, arm)
	}
	return arms, nil
}

// CellOf reads TASK/ARM/RUN, of a run directory. Names of arms of other harnesses may have slashes,
// too: what is there decides.
func CellOf(con *console.Console, dir, name string) (cell ledger.Cell, ok bool) {
	cell.TaskID, cell.Arm, cell.RunIndex, ok = SplitCell(name)
	if strings.Count(name, "/") < 3 {
		return cell, ok
	}
	contents, err := ledger.ReadFile(filepath.Join(con.Path(dir), experiment.LedgerFile))
	if err != nil {
		return cell, ok
	}
	for i := range contents.Records {
		there := contents.Records[i].Cell()
		if fmt.Sprintf("%s/%s/%d", there.TaskID, there.Arm, there.RunIndex) == name {
			return there, true
		}
	}
	return cell, ok
}

// SplitCell reads TASK/ARM/RUN. Names of tasks may have slashes, those of arms have none.
func SplitCell(text string) (task, arm string, run int, ok bool) {
	parts := strings.Split(text, "/")
	n := len(parts)
	if n < 3 {
		return "", "", 0, false
	}
	task, arm = strings.Join(parts[:n-2], "/"), parts[n-2]
	run, err := strconv.Atoi(parts[n-1])
	return task, arm, run, err == nil && run >= 0 && task != "" && arm != ""
}

// defaultWorkers is how many attempts run at a time on this machine by default.
func defaultWorkers() int { return min(4, max(2, runtime.NumCPU()/2)) }
