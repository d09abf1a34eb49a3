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
	event string
	amend string
}

func (o *taskOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "task-file", "", "file with the task")
	flags.StringVar(&o.text, "task-text", "", "the task itself")
	flags.StringVar(&o.event, "task-event", "",
		"file with a GitHub event to make the task from; GITHUB_EVENT_NAME names its kind")
	flags.StringVar(&o.amend, "task-amend", "", "text added to the task after a blank line")
}

// load returns the whole task. Blank flags count as not given.
func (o *taskOptions) load(con *console.Console) (string, error) {
	file, event := strings.TrimSpace(o.file), strings.TrimSpace(o.event)
	given := 0
	for _, way := range []string{file, event, strings.TrimSpace(o.text)} {
		if way != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return "", console.Usagef("use one of --task-file, --task-text and --task-event")
	case given == 0:
		return "", console.Usagef("no task: use --task-file, --task-text or --task-event")
	case file != "":
		content, err := os.ReadFile(con.Path(file))
		if err != nil {
			return "", console.Exit(console.ExitUsage, fmt.Errorf("read task: %w", err))
		}
		if strings.TrimSpace(string(content)) == "" {
			return "", console.Usagef("--task-file %s is empty; it must say what the agent should do", file)
		}
		return combine(string(content), o.amend), nil
	case event != "":
		task, amend, err := eventTask(con, event)
		if strings.TrimSpace(o.amend) != "" {
			amend = o.amend
		}
		return combine(task, amend), err
	default:
		return combine(o.text, o.amend), nil
	}
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
