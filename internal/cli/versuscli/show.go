package versuscli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
)

func newShow(con *console.Console, registry *agent.Registry) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:   "show DIR TASK/ARM/RUN",
		Short: "Show why one run failed, and everything else known about it, the judges' verdicts included",
		Example: fmt.Sprintf(`  fit versus show eval/run-001 fix-auth-race/%[1]s/0
  fit versus show eval/run-001 fix-auth-race/%[1]s/0 --format json`, registry.Examples(1)...),
		Args: experimentcli.ShowArgs,
		RunE: func(command *cobra.Command, args []string) error {
			experimentcli.DirectoryFirst(con, args)
			return experimentcli.ShowCell(command.Context(), con, registry, args[0], args[1], format.JSON())
		},
	}
	format.Register(command.Flags(), "output format; json is a cell of an EvalReport (fit versus schema)")
	format.RegisterRobot(command.Flags())
	return command
}
