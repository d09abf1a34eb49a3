package experimentcli

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/workspace"
)

// auto is what the task says, or the best isolation that works here.
const auto = "auto"

// isolationChoices are the values of --isolation.
var isolationChoices = []string{
	auto, sandbox.IsolationBwrap, sandbox.IsolationPodman, sandbox.IsolationDocker, sandbox.IsolationNone,
}

const (
	isolationUsage = "what isolates the processes of an attempt from the rest of the machine; auto is the task's " +
		"setting, else a container for a task with an image, otherwise the best that works here"
	pullUsage = "pull images that this machine, or a worker of the fleet, does not have"
)

// Isolation are the flags of commands that run the processes of an attempt without its agent.
type Isolation struct {
	choice console.Choice
	pull   bool
}

// Register adds the flags.
func (i *Isolation) Register(flags *pflag.FlagSet) {
	i.choice = console.Choice{Value: auto, Choices: isolationChoices}
	flags.Var(&i.choice, "isolation", isolationUsage)
	flags.BoolVar(&i.pull, "pull", false, pullUsage)
}

// Kind is the isolation that was asked for; empty: what the task says, or the best that works here.
func (i *Isolation) Kind() string { return isolationKind(i.choice.Value) }

func isolationKind(choice string) string {
	if choice == auto {
		return ""
	}
	return choice
}

// Engines finds the images of tasks.
func (i *Isolation) Engines(progress io.Writer) *workspace.Engines {
	return imageEngines(i.pull, progress)
}

func imageEngines(pull bool, progress io.Writer) *workspace.Engines {
	return &workspace.Engines{Pull: pull, Progress: progress}
}
