package versuscli

import (
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/stats"
)

func newReport(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := newReportOptions()
	command := &cobra.Command{
		Use:   "report DIRECTORY",
		Short: "Show the report of a run directory, offline (calls no agent and no model)",
		Long: `Show the report of a run directory, of fit versus or fit-benchmark: scores, claims, causes of failure,
milestones, judges and cost. It uses only the files in the directory: no agent, no model and no clock.`,
		Example: `  fit versus report eval/run-001
  fit versus report eval/run-001 --robot > report.json
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
	flags.BoolVar(&opts.robot, "robot", false, "print one JSON document, an EvalReport")
	flags.Var(&opts.format, "format", "output format")
	flags.StringVar(&opts.weights, "weights", "",
		"weights of the blended score, e.g. correctness=0.35/0.7: weight, and the heuristic's fraction of it")
	flags.Float64Var(&opts.alpha, "alpha", stats.DefaultAlpha, "significance level")
	opts.registerProof(flags)
	return command
}
