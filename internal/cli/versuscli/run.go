package versuscli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

func newRun(_ *console.Console, _ *agent.Registry) *cobra.Command {
	return &cobra.Command{
		Use:     "run TASK.yaml…",
		Short:   "Run every task with every agent N times; rerun to resume",
		Example: "  fit versus run examples/versus/go.yaml --agents claude-code,codex --runs 3",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(*cobra.Command, []string) error { return errors.New("not built yet") },
	}
}
