package versuscli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/versus"
)

func newJudge(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := newJudgeOptions()
	command := &cobra.Command{
		Use:   "judge DIR",
		Short: "Ask judges about the runs in a run directory; nothing is asked twice",
		Long: `Ask judges about the runs in a run directory, of fit versus or fit-benchmark. Every reply is kept in
the directory, so nothing is asked twice. Flags that are not given keep their values from the last time.

The exit code is 3 if a member cannot be asked (the replies of the others are kept) or the files of a run are missing
or changed (the other runs are judged), and 4 if the budget is used up.`,
		Example: `  fit versus judge eval/run-001 --panel panel.yaml
  fit versus judge eval/run-001 --pairwise ties --judge-max-cost-usd 5`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runJudge(command.Context(), &reader{con: con, registry: registry}, &opts, args[0])
		},
	}
	opts.register(command.Flags())
	return command
}

func runJudge(ctx context.Context, d *reader, opts *judgeOptions, dir string) error {
	if opts.asksNobody() {
		return console.Usagef("--judge off asks nobody; use auto or all")
	}
	source, err := d.open(ctx, dir, versus.Options{})
	if err != nil {
		return err
	}
	outcome, found, err := opts.ask(ctx, d, dir, source)
	if err == nil && !found {
		return console.Usagef("--panel is required: nobody has judged %s yet", dir)
	}
	if found {
		fmt.Fprintln(d.con.Stdout, askedText(outcome))
	}
	return err
}

// askedText says what asking came to.
func askedText(outcome judge.Outcome) string {
	text := fmt.Sprintf("%s, %s", report.Count(outcome.Asked, "request"), display.FineDollars(outcome.CostUSD))
	if outcome.Unpriced > 0 {
		text += fmt.Sprintf(" and %d without a price", outcome.Unpriced)
	}
	return text
}
