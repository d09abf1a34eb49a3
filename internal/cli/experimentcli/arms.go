package experimentcli

import (
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

// DefaultWorkers is how many attempts run at a time on this machine unless the user says.
func DefaultWorkers() int { return min(4, max(2, runtime.NumCPU()/2)) }
