// Package harnesscli is the command fit-harness: agents at work, alone or in teams, and the trace
// of it.
package harnesscli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

// New returns the command tree.
func New(con *console.Console, registry *agent.Registry) *cobra.Command {
	command := &cobra.Command{
		Use:     "harness",
		Aliases: []string{"eval"},
		Short:   "Run agents and keep a trace of everything they did",
		Long: `Run agents and keep a trace of everything they did.

Exit codes: 0 success · 1 the agent failed or ran out of turns or time · 2 usage error · 3 provider, credentials or
another infrastructure failure · 4 stopped by a budget · 130 interrupted.`,
	}
	command.AddCommand(
		newRun(con, registry), newSupervise(con, registry), newFacilitate(con, registry), newDiscuss(con, registry),
		newJudge(con, registry), newResume(con, registry), newCallback(con, registry), newScanLogs(con),
		newOutput(con, registry), newTee(con, registry),
	)
	return command
}
