package versuscli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/session"
)

type auditOptions struct {
	strict bool
	format console.Format
	// clear names a run whose flags of one kind a person has looked at.
	clear, flag, by, reason string
}

func newAudit(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts auditOptions
	command := &cobra.Command{
		Use:   "audit DIR",
		Short: "Show signs of cheating in the runs of a run directory, with file and line",
		Long: `Show signs of cheating in the runs of a run directory, of fit versus or fit-benchmark: deleted or
weakened tests, a changed check, mined history, and others, each with file and line. It looks at traces and changes,
not at whether the runs passed. A critical flag disqualifies a run of fit versus until a person has reviewed it.
--clear records the review: flags of that kind stay in every report, with the reviewer and the reason, but no longer
decide anything.

The exit code is 3 if the files of a run are missing or differ from the record; the flags of the other runs are shown.`,
		Example: `  fit versus audit eval/run-001
  fit versus audit eval/run-001 --strict --format sarif > findings.sarif
  fit versus audit eval/run-001 --clear fix-auth-race/ARM/0 --flag reference_access --by Ann --reason "the file is the task's own"`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runAudit(command.Context(), &reader{con: con, registry: registry}, &opts, args[0])
		},
	}
	flags := command.Flags()
	flags.BoolVar(&opts.strict, "strict", false, "exit 1 when there is a critical flag")
	opts.format.Register(flags, "output format", console.FormatText, console.FormatJSON, formatSARIF)
	opts.format.RegisterRobot(flags)
	flags.StringVar(&opts.clear, "clear", "", "record that a person reviewed this run, TASK/ARM/RUN, and clears "+
		"its flags of the kind --flag")
	flags.StringVar(&opts.flag, "flag", "", "kind of the flags to clear")
	flags.StringVar(&opts.by, "by", "", "who reviewed them")
	flags.StringVar(&opts.reason, "reason", "", "why they are not cheating")
	return command
}

func runAudit(ctx context.Context, d *reader, opts *auditOptions, dir string) error {
	source, err := d.open(ctx, dir, versus.Options{})
	if err == nil && opts.clear+opts.flag+opts.by+opts.reason != "" {
		if err = opts.review(ctx, d.con, source, dir); err == nil {
			source, err = d.open(ctx, dir, versus.Options{})
		}
	}
	if err != nil {
		return err
	}
	audit := source.Audit()
	switch opts.format.Value {
	case console.FormatJSON:
		err = audit.Robot(d.con.Stdout)
	case formatSARIF:
		err = audit.SARIF(d.con.Stdout)
	default:
		err = printAudit(d.con, audit)
	}
	if err == nil && len(audit.Problems) > 0 {
		return unreadable(audit.Problems)
	}
	if err == nil && opts.strict && audit.Critical > 0 {
		return console.Exitf(console.ExitNegative, "%s in %s", report.Count(audit.Critical, "critical flag"), dir)
	}
	return err
}

// review notes what a person says about the flags of a run.
func (o *auditOptions) review(ctx context.Context, con *console.Console, source *versus.Source, dir string) error {
	if o.clear == "" || o.flag == "" || strings.TrimSpace(o.by) == "" || strings.TrimSpace(o.reason) == "" {
		return console.Usagef("a review needs --clear TASK/ARM/RUN, --flag, --by and --reason")
	}
	of, ok := experimentcli.CellOf(con, dir, o.clear)
	if !ok {
		return console.Usagef("%q is not a run; use TASK/ARM/RUN, e.g. fix-auth-race/agent/0", o.clear)
	}
	err := source.Clear(ctx, of.TaskID, of.Arm, of.RunIndex, o.flag, session.Clearance{
		By:     o.by,
		Reason: o.reason,
		AtMs:   time.Now().UnixMilli(),
	})
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	return nil
}

// unreadable is the error of runs that cannot be looked at.
func unreadable(problems []string) error {
	return console.Exitf(console.ExitIncomplete, "%s could not be read: %s", report.Count(len(problems), "run"),
		display.Line(problems[0]))
}

func printAudit(con *console.Console, audit *versus.Audit) error {
	table := con.Table()
	if len(audit.Flags) > 0 {
		fmt.Fprintln(table, "run\tseverity\tflag\twhere\tcontent")
	}
	for i := range audit.Flags {
		flag := &audit.Flags[i]
		severity := string(flag.Severity)
		if flag.Suspected {
			severity += " (suspected)"
		}
		if flag.Cleared != nil {
			severity = fmt.Sprintf("cleared by %s: %s", display.Line(flag.Cleared.By),
				display.CutColumns(display.Line(flag.Cleared.Reason), 60))
		}
		fmt.Fprintf(table, "%s/%s/%d\t%s\t%s\t%s\t%s\n", display.Line(flag.Task), display.Line(flag.Arm), flag.Run,
			severity, flag.Kind, display.Name(flag.Address()), display.CutColumns(display.Line(flag.Evidence), 80))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(con.Stdout, "%s: %s, %d of them critical\n", report.Count(audit.Runs, "run"),
		report.Count(len(audit.Flags), "flag"), audit.Critical)
	return err
}
