package versuscli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

func newReport(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts reportOptions
	command := &cobra.Command{
		Use:   "report DIR",
		Short: "Show the report of a run directory, offline (calls no agent and no model)",
		Long: `Show the report of a run directory, of fit versus or fit-benchmark: scores, claims, causes of failure,
milestones, judges and cost. It uses only the files in the directory: no agent, no model and no clock.`,
		Example: `  fit versus report eval/run-001
  fit versus report eval/run-001 --format json > report.json
  fit versus report eval/run-001 --format sarif > findings.sarif`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			options, err := opts.forVersus()
			if err != nil {
				return err
			}
			built, err := (&reader{con: con, registry: registry}).report(command.Context(), args[0], options)
			if err != nil {
				return err
			}
			if err := opts.print(con, built); err != nil {
				return err
			}
			return opts.checkDelivery(built.PerAgent)
		},
	}
	flags := command.Flags()
	opts.register(flags, console.FormatText, console.FormatJSON, console.FormatMarkdown, formatSARIF)
	flags.StringVar(&opts.weights, "weights", "",
		"weights of the blended score, e.g. correctness=0.35/0.7: weight, and the heuristic's fraction of it")
	return command
}
