package experimentcli

import (
	"os"
	"runtime"
	"strings"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/internal/cli/console"
)

// ReadArms reads the file of --arms or, without one, the values of --arm.
func ReadArms(con *console.Console, file string, texts []string) ([]experiment.Arm, error) {
	if file != "" {
		return experiment.LoadArms(con.Path(file))
	}
	var arms []experiment.Arm
	for _, text := range texts {
		arm, err := experiment.ParseArm(text)
		if err != nil {
			return nil, err
		}
		arm.Skills = con.Path(arm.Skills)
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

// SplitArm reads one side of a comparison: a run directory, or DIR:ARM.
func SplitArm(con *console.Console, text string) (dir, arm string) {
	if _, err := os.Stat(con.Path(text)); err != nil {
		if at := strings.LastIndex(text, ":"); at > 0 {
			return text[:at], text[at+1:]
		}
	}
	return text, ""
}

// DefaultWorkers is how many attempts run at a time on this machine by default.
func DefaultWorkers() int { return min(4, max(2, runtime.NumCPU()/2)) }
