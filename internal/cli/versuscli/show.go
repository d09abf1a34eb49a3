package versuscli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
)

func newShow(con *console.Console, registry *agent.Registry) *cobra.Command {
	var robot bool
	format := console.Choice{Value: "text", Choices: []string{"text", formatJSON}}
	command := &cobra.Command{
		Use: "show DIRECTORY TASK/ARM/RUN",
		Short: "Show everything known about one run: the model's input, evidence, flags, and the " +
			"judges' verdicts",
		Example: fmt.Sprintf(`  fit versus show eval/run-001 fix-auth-race/%[1]s/0
  fit versus show eval/run-001 fix-auth-race/%[1]s/0 --robot`, registry.Examples(1)...),
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return experimentcli.ShowCell(command.Context(), con, registry, args[0], args[1],
				robot || format.Value == formatJSON)
		},
	}
	command.Flags().BoolVar(&robot, "robot", false, "print one JSON document, a cell of the EvalReport")
	command.Flags().Var(&format, "format", "output format")
	return command
}
