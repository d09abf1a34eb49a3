package experimentcli

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/workspace"
)

// auto is the best isolation that works here.
const auto = "auto"

// Isolation are the flags that say what holds the processes of attempts.
type Isolation struct {
	choice console.Choice
	pull   bool
}

// Register adds the flags.
func (i *Isolation) Register(flags *pflag.FlagSet) {
	i.choice.Choices = []string{
		auto, sandbox.IsolationBwrap, sandbox.IsolationPodman, sandbox.IsolationDocker, sandbox.IsolationNone,
	}
	flags.Var(&i.choice, "sandbox", "sandbox for the processes of an attempt (default: the task's setting, else "+
		"auto: a container for a task with an image, otherwise the best that works here)")
	flags.Var(&i.choice, "isolation", "older name of --sandbox")
	flags.BoolVar(&i.pull, "pull", false, "pull images that this machine, or a worker of the fleet, does not have")
}

// Kind is the isolation that was asked for; empty: what the task says, or the best that works here.
func (i *Isolation) Kind() string {
	if i.choice.Value == auto {
		return ""
	}
	return i.choice.Value
}

// Engines finds the images of tasks.
func (i *Isolation) Engines(progress io.Writer) *workspace.Engines {
	return &workspace.Engines{Pull: i.pull, Progress: progress}
}
