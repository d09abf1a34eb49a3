// Package benchmarkcli is the command fit-benchmark: tasks, arms, repetitions, hidden tests, and an
// answer.
package benchmarkcli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

// New returns the command tree.
func New(con *console.Console, registry *agent.Registry) *cobra.Command {
	command := &cobra.Command{
		Use:   "benchmark",
		Short: "Measure agents on tasks with hidden tests, and report whether a change made one better",
		Long: `Measure agents on tasks with hidden tests, and report whether a change made one better.

A family is a directory of tasks. An arm is a complete agent configuration. "run" runs every task with every arm N
times, grades each result with checks that the agent cannot touch, and records it; "report" and "compare" turn the
records into answers. Rerun the same command to resume.

Exit codes: 0 the measurement is complete, whatever the result · 1 a requested gate is not met · 2 usage error · 3
infrastructure failure, or incomplete · 4 stopped by a budget · 130 interrupted.`,
		Example: `  fit-benchmark init my-family
  fit-benchmark lint --family my-family
  fit-benchmark run --family my-family --arm before=agent:builtin --arm after=agent:builtin,skills:new-skills
  fit-benchmark compare benchmark-runs:before benchmark-runs:after --fail-on regressed`,
	}
	command.AddCommand(
		NewRun(con, registry, nil), newGrade(con, registry), newReport(con, registry), newCompare(con, registry),
		newShow(con, registry),
		newPlan(con, registry), newLint(con),
		newInit(con), newImport(con), newImportResults(con, registry),
		newExport(con), newList(con), newMerge(con), newClean(con), newCtl(con),
	)
	return command
}
