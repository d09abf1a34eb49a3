package benchmarkcli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/cli/viewcli"
)

func newShow(con *console.Console, registry *agent.Registry) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:   "show DIR TASK/ARM/RUN",
		Short: "Show why one run failed, and everything else known about it",
		Long: `Show why a run failed: its outcome, the checks it failed with what was expected and seen, the error and
what to do about it, the agent's last turns, the cost, the files, and the command that grades them again. Then: which
files of the project and of the arm reached the model, where in its prompt, at how many tokens per call, and whether
they were opened; what comes with the agent; and the evidence about the work.`,
		Example: `  fit-benchmark show benchmark-runs count-words/after/0
  fit-benchmark show benchmark-runs count-words/after/0 --format json
  fit-benchmark show benchmark-runs count-words/after/0 --format html > cell.html`,
		Args: experimentcli.ShowArgs,
		RunE: func(command *cobra.Command, args []string) error {
			experimentcli.DirectoryFirst(con, args)
			if format.Value != formatHTML {
				return experimentcli.ShowCell(command.Context(), con, registry, args[0], args[1], format.JSON())
			}
			of, ok := experimentcli.CellOf(con, args[0], args[1])
			if !ok {
				return console.Usagef("%s: name the run as TASK/ARM/RUN", args[1])
			}
			cfg, _, err := viewcli.Config(con, registry.Dialects(), args[:1], nil) // nil keeps nothing to remove
			if err != nil {
				return err
			}
			return viewcli.ExportCell(command.Context(), con.Stdout, cfg, of,
				"fit-benchmark show "+strings.Join(args, " ")+" --format html")
		},
	}
	format.Register(command.Flags(), "output format; json is a cell of an EvalReport (fit versus schema), html a "+
		"self-contained file to share", console.FormatText, console.FormatJSON, formatHTML)
	return command
}
