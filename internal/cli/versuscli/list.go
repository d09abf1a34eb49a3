package versuscli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/versus"
)

type listOptions struct {
	format console.Format
	tasks  bool
	since  string
}

func newList(con *console.Console) *cobra.Command {
	var opts listOptions
	command := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List the run directories in a directory (default: eval)",
		Example: `  fit versus list
  fit versus list runs --since 2026-11-01 --format json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := runsDir
			if len(args) > 0 {
				dir = args[0]
			}
			return runList(con, &opts, dir)
		},
	}
	flags := command.Flags()
	opts.format.Register(flags, "output format")
	opts.format.RegisterRobot(flags)
	flags.BoolVar(&opts.tasks, "tasks", false, "list the tasks of each run directory, one per line")
	flags.StringVar(&opts.since, "since", "", "only runs with results from this day on, YYYY-MM-DD")
	return command
}

func runList(con *console.Console, opts *listOptions, dir string) error {
	var since int64
	if opts.since != "" {
		day, err := time.Parse(time.DateOnly, opts.since)
		if err != nil {
			return console.Usagef("--since %s: must be a day, e.g. 2026-11-01", opts.since)
		}
		since = day.UnixMilli()
	}
	inventory, err := versus.List(con.Path(dir), since, experimentcli.OwnKey(con))
	if err != nil {
		return console.Usagef("there is no directory %s; name one that holds run directories", dir)
	}
	for i := range inventory.Runs {
		if signer := inventory.Runs[i].Signer; signer.Doubt { // that others signed theirs is no news here
			experimentcli.NoteSigner(con, signer)
		}
	}
	if opts.format.JSON() {
		return inventory.Robot(con.Stdout)
	}
	table := con.Table()
	for i := range inventory.Runs {
		printListed(table, &inventory.Runs[i], opts.tasks)
	}
	return table.Flush()
}

func printListed(table io.Writer, run *versus.Listed, tasks bool) {
	name := display.Name(run.Directory)
	switch {
	case run.Problem != "":
		fmt.Fprintf(table, "%s\tcannot be read: %s\n", name, display.Line(run.Problem))
	case tasks:
		for _, task := range run.Tasks {
			fmt.Fprintf(table, "%s\t%s\n", name, display.Line(task))
		}
	default:
		cells := fmt.Sprint(run.Cells)
		if run.Planned > 0 {
			cells += fmt.Sprintf(" of %d", run.Planned)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s cells\t%d passed\t%s\n", name,
			time.UnixMilli(run.CreatedMs).UTC().Format(time.DateTime), report.Count(len(run.Tasks), "task"),
			display.Line(strings.Join(run.Arms, ", ")), cells, run.Passed, display.Cost(run.CostUSD))
	}
}
