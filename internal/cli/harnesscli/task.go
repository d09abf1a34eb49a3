package harnesscli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
)

// taskOptions are the ways to say what is to be done.
type taskOptions struct {
	file  string
	text  string
	amend string
}

func (o *taskOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "task-file", "", "file with the task")
	flags.StringVar(&o.text, "task-text", "", "the task itself")
	flags.StringVar(&o.amend, "task-amend", "", "text added to the task after a blank line")
}

// load returns the whole task. Blank flags count as not given.
func (o *taskOptions) load(con *console.Console) (string, error) {
	file, text, amend := strings.TrimSpace(o.file), o.text, o.amend
	hasText := strings.TrimSpace(text) != ""
	switch {
	case file != "" && hasText:
		return "", console.Usagef("give the task once: --task-file or --task-text, not both")
	case file == "" && !hasText:
		return "", console.Usagef("there is no task: give --task-file or --task-text")
	case file != "":
		content, err := os.ReadFile(con.Path(file))
		if err != nil {
			return "", console.Exit(console.ExitUsage, fmt.Errorf("read task: %w", err))
		}
		text = string(content)
	}
	return combine(text, amend), nil
}

// combine adds an amendment to a task.
func combine(task, amend string) string {
	switch {
	case strings.TrimSpace(amend) == "":
		return task
	case task == "":
		return amend
	default:
		return task + "\n\n" + amend
	}
}
