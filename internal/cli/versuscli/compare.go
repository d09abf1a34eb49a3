package versuscli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/versus"
)

func newCompare(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts reportOptions
	command := &cobra.Command{
		Use:   "compare A B…",
		Short: "Compare run directories, task by task",
		Long: `Compare run directories, task by task: the first with each of the others. Each is a directory, or
DIR:ARM for one arm of it. Directories with several arms are compared arm by arm, by name. The p-values of all
comparisons are corrected for their number.`,
		Example: fmt.Sprintf(`  fit versus compare eval/run-001 eval/run-002
  fit versus compare eval/run-001:%s eval/run-001:%s --format json`, registry.Examples(2)...),
		Args: cobra.MinimumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return runCompare(command.Context(), &reader{con: con, registry: registry}, &opts, args)
		},
	}
	opts.register(command.Flags(), console.FormatText, console.FormatJSON, console.FormatMarkdown)
	return command
}

func runCompare(ctx context.Context, d *reader, opts *reportOptions, args []string) error {
	options, err := opts.forVersus()
	if err != nil {
		return err
	}
	var sides []versus.Side
	for _, arg := range args {
		dir, arm := results.SplitArm(arg, d.con.Path)
		side := versus.Side{Name: arg, Arm: arm}
		if side.Source, err = d.open(ctx, dir, options); err != nil {
			return err
		}
		sides = append(sides, side)
	}
	compared, err := versus.Compare(sides)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	switch opts.format.Value {
	case console.FormatJSON:
		err = compared.Robot(d.con.Stdout)
	case console.FormatMarkdown:
		err = compared.Markdown(d.con.Stdout)
	default:
		err = d.con.Folded(compared.Text)
	}
	if err != nil {
		return err
	}
	return opts.checkDelivery(compared.PerAgent)
}
