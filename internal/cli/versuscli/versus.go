// Package versuscli is the command fit versus, also called subq eval: the same tasks, several
// agents, and evidence that can be checked.
package versuscli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

// New returns the command tree.
func New(con *console.Console, registry *agent.Registry) *cobra.Command {
	command := &cobra.Command{
		Use:   "versus",
		Short: "Compare agents on the same tasks, with evidence that can be checked",
		Long: `Compare agents on the same tasks, with evidence that can be checked. "subq eval" is the same command.

A task is a YAML file: a prompt, a commit of a repository, and a command that verifies the result. "run" lets every
agent work on every task in its own workspace and records what happened in a run directory; the other commands read
that directory and need no agent.

Exit codes: 0 the measurement is complete, whatever the result · 1 a requested gate is not met · 2 usage error · 3
infrastructure failure, or incomplete · 4 stopped by a budget · 130 interrupted.`,
		Example: fmt.Sprintf(`  fit versus doctor
  fit versus run examples/versus/go.yaml --agents %s,%s --runs 3`, registry.Examples(2)...),
	}
	command.AddCommand(
		newRun(con, registry), newJudge(con, registry), newReport(con, registry), newCompare(con, registry),
		newAudit(con, registry), newShow(con, registry), newCalibrate(con, registry), newList(con),
		newSchema(con, registry), newDoctor(con, registry),
	)
	return command
}
