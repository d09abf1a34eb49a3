package benchmarkcli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
)

func newCtl(con *console.Console) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:   "ctl DIR [status|pause|resume|cancel CELL|requeue CELL|concurrency N|budget USD]",
		Short: "Show or control a running experiment",
		Long: `Show or control a running experiment. A CELL is TASK/ARM/RUN; runs count from 0.

  status       show its progress (the default)
  pause        start no more cells; running cells finish
  resume       start cells again
  cancel       stop a cell, or take it off the queue, until requeue or the next process runs it
  requeue      put a cell that was cancelled or ended in an error at the front of the queue;
               verdicts are never repeated
  concurrency  run this many cells concurrently
  budget       limit what the experiment may spend, in dollars; 0 is unlimited`,
		Example: `  fit-benchmark ctl results
  fit-benchmark ctl results pause
  fit-benchmark ctl results cancel even/after/1
  fit-benchmark ctl results budget 10`,
		Args: cobra.RangeArgs(1, 3),
		RunE: func(command *cobra.Command, args []string) error {
			asked, err := parseCommand(args[1:])
			if err != nil {
				return err
			}
			return runCtl(command.Context(), con, args[0], asked, format.Value)
		},
	}
	format.Register(command.Flags(), "output format")
	return command
}

// parseCommand reads an action and what it is about.
func parseCommand(args []string) (control.Command, error) {
	if len(args) == 0 {
		return control.Command{Action: control.Ping}, nil
	}
	c := control.Command{Action: args[0]}
	about := ""
	if len(args) > 1 {
		about = args[1]
	}
	var err error
	switch c.Action {
	case control.Ping, control.Pause, control.Resume:
		if about != "" {
			return c, console.Usagef("%s takes no argument, but got %q", c.Action, about)
		}
	case control.Cancel, control.Requeue:
		var ok bool
		if c.Task, c.Arm, c.Run, ok = experimentcli.SplitCell(about); !ok {
			return c, console.Usagef("name the run: %s TASK/ARM/RUN, e.g. even/after/1, not %q", c.Action, about)
		}
	case control.Concurrency:
		if c.N, err = strconv.Atoi(about); err != nil || c.N < 1 {
			return c, console.Usagef("concurrency %q: must be at least 1", about)
		}
	case control.BudgetUSD:
		usd, err := strconv.ParseFloat(strings.TrimPrefix(about, "$"), 64)
		if err != nil || !(usd >= 0) {
			return c, console.Usagef("budget %q: must be an amount in dollars, e.g. 10; 0 is unlimited", about)
		}
		c.USD = &usd
	default:
		return c, console.Usagef(
			"%q is not an action; use status, pause, resume, cancel, requeue, concurrency or budget", c.Action)
	}
	return c, nil
}

func runCtl(ctx context.Context, con *console.Console, dir string, c control.Command, format string) error {
	answer, err := control.Ask(ctx, con.Path(dir), c)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return console.Usagef("%s: %w; fit-benchmark run starts or continues it", dir, control.ErrNotRunning)
	case errors.As(err, new(*control.Refused)):
		return console.Exit(console.ExitUsage, err)
	case err != nil:
		return console.Exit(console.ExitIncomplete, err)
	case format == "json":
		return jsonenc.WriteIndented(con.Stdout, answer)
	}
	if answer.Message != "" {
		fmt.Fprintln(con.Stdout, answer.Message)
	}
	return printStatus(con, &answer.Status)
}

func printStatus(con *console.Console, s *control.Status) error {
	parts := []string{
		s.State, fmt.Sprintf("%d of %s", s.Done, report.Count(s.Total, "cell")), fmt.Sprintf("%d passed", s.Passed),
	}
	if s.Errors > 0 {
		parts = append(parts, report.Count(s.Errors, "error"))
	}
	if s.Cancelled > 0 {
		parts = append(parts, fmt.Sprintf("%d cancelled", s.Cancelled))
	}
	cost := display.Dollars(s.CostUSD)
	if s.BudgetUSD != nil {
		cost += " of " + display.Dollars(*s.BudgetUSD)
	}
	parts = append(parts, cost, fmt.Sprintf("%d at a time", s.Concurrency))
	if left := s.LeftMs; left != nil {
		parts = append(parts, fmt.Sprintf("%s left [%s, %s]", display.Millis(left.Est), display.Millis(left.Lo),
			display.Millis(left.Hi)))
	}
	fmt.Fprintln(con.Stdout, strings.Join(parts, " · "))
	for _, cell := range s.Running {
		where := ""
		if cell.Where != "" {
			where = ", on " + display.Line(cell.Where)
		}
		fmt.Fprintf(con.Stdout, "  %s/%s/%d  attempt %d, for %s%s\n", cell.Task, cell.Arm, cell.Run, cell.Attempt,
			display.Millis(cell.ElapsedMs), where)
	}
	return nil
}
