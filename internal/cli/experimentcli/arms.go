package experimentcli

import (
	"runtime"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
)

// ContextUsage explains --context.
const ContextUsage = "project files agents read on their own: project, which is instruction " +
	"files, skills, sub-agents and commands, or none (default: what the arm says, else the task, else project)"

// ReadArms reads the file of --arms or, without one, the values of --arm.
func ReadArms(con *console.Console, file string, texts []string) ([]experiment.Arm, error) {
	if file != "" {
		return experiment.LoadArms(con.Path(file))
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

// CheckModelURL refuses an arm whose model cannot be reached by HTTP.
func CheckModelURL(arm *experiment.Arm) error {
	url := arm.ModelURL
	if url != "" && !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return console.Usagef("arm %s: %q is not a valid model URL: it does not begin with http:// or https://",
			arm.Name, url)
	}
	return nil
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

// DefaultWorkers is how many attempts run at a time on this machine by default.
func DefaultWorkers() int { return min(4, max(2, runtime.NumCPU()/2)) }
