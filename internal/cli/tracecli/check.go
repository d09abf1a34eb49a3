package tracecli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/report"
)

func (a *app) fileVerbs() []*cobra.Command {
	return []*cobra.Command{a.split(), a.assert(), a.byDiscussion(), a.validate()}
}

func (a *app) split() *cobra.Command {
	var opts query.Split
	command := a.verb("split FILE --mode MODE", "Write one file per participant from a combined trace",
		`  fit trace split team.ndjson --mode facilitate --case issue-12 --output-dir out`,
		cobra.ExactArgs(1), func(ctx context.Context, out *output, args []string) error {
			if !slices.Contains(query.SplitModes, opts.Mode) {
				return console.Usagef("--mode must be one of %s, not %q", strings.Join(query.SplitModes, ", "),
					opts.Mode)
			}
			t, err := a.open(args[0])
			if err != nil {
				return err
			}
			if opts.Dir == "" {
				opts.Dir = filepath.Dir(args[0])
			}
			opts.Dir = a.con.Path(opts.Dir)
			files, err := t.Split(ctx, opts)
			for _, file := range files {
				fmt.Fprintf(a.con.Stderr, "wrote %s\n", file)
			}
			return err
		})
	command.Flags().StringVar(&opts.Mode, "mode", "", "the mode of the session: run, supervise, facilitate or discuss")
	command.Flags().StringVar(&opts.Case, "case", "default", "the `NAME` of the case, for the names of the files")
	command.Flags().StringVar(&opts.Dir, "output-dir", "", "where to write; the directory of FILE if not given")
	_ = command.RegisterFlagCompletionFunc("mode",
		cobra.FixedCompletions(query.SplitModes, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// assertOptions are the flags of assert.
type assertOptions struct {
	Grep, Query, CitesJob, Message, Weight string
	Exists, Not, Gate, Unwrap              bool
}

func (a *app) assert() *cobra.Command {
	var opts assertOptions
	command := &cobra.Command{
		Use:   "assert TEST FILE (--grep REGEX | --query JMESPATH | --exists | --cites-job JOBFILE)",
		Short: "Check a file for a grader: print one row and exit 0 or 1",
		Long: `Check a file for a grader. It always prints exactly one JSON row, and exits 0 if the check passes and 1
if it fails or cannot run.

--grep matches line by line and ignores case. --query passes unless it returns null, false or an empty array; NDJSON
is queried as an array of its lines, and --unwrap looks at the events inside the envelopes of a trace. A check that
cannot run (a missing file, a bad pattern) fails with and without --not.`,
		Example: `  fit trace assert tests-ran trace.ndjson --grep 'go test'
  fit trace assert used-edit trace.ndjson --unwrap --query "[?type=='assistant'].message.content[] | [?name=='Edit']" --gate
  fit trace assert no-secret out.txt --grep 'sk-ant-' --not --weight 2`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			assertion, err := a.assertion(command, opts, args)
			if err != nil {
				return a.emitRow(assertion.FailedRow(err))
			}
			return a.emitRow(assertion.Check())
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.Grep, "grep", "", "pass if the `REGEX` matches")
	flags.StringVar(&opts.Query, "query", "", "pass if the `JMESPATH` finds something")
	flags.BoolVar(&opts.Exists, "exists", false, "pass if the file exists")
	flags.StringVar(&opts.CitesJob, "cites-job", "", "pass if the file cites the job described in `FILE`")
	flags.BoolVar(&opts.Not, "not", false, "pass if the check fails")
	flags.BoolVar(&opts.Unwrap, "unwrap", false, "with --query: look at events instead of envelopes")
	flags.StringVar(&opts.Message, "message", "", "message if it fails")
	flags.BoolVar(&opts.Gate, "gate", false, "make the row a gate")
	flags.StringVar(&opts.Weight, "weight", "", "give the row a weight; 0 makes it diagnostic")
	return command
}

// emitRow prints the row before anything can fail, and only then says by the exit code how it went.
func (a *app) emitRow(row query.Row) error {
	raw, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.con.Stdout, "%s\n", display.JSON(jsonenc.Style{}.AppendJSON(nil, raw))); err != nil {
		return err
	}
	switch {
	case row.Failed != nil:
		return console.Exit(console.ExitNegative, row.Failed)
	case !row.Pass:
		return console.Exit(console.ExitNegative, nil)
	}
	return nil
}

func (a *app) assertion(command *cobra.Command, opts assertOptions, args []string) (query.Assertion, error) {
	s := query.Assertion{
		Exists:  opts.Exists,
		Not:     opts.Not,
		Unwrap:  opts.Unwrap,
		Message: opts.Message,
	}
	given := func(name, value string) *string {
		if !command.Flags().Changed(name) {
			return nil
		}
		return &value
	}
	s.Grep, s.Query = given("grep", opts.Grep), given("query", opts.Query)
	if job := given("cites-job", opts.CitesJob); job != nil {
		s.CitesJob = new(a.con.Path(*job))
	}
	if len(args) > 0 {
		s.Test = args[0]
	}
	if len(args) > 1 {
		s.File = a.con.Path(args[1])
	}
	if len(args) > 2 {
		return s, fmt.Errorf("it takes TEST FILE, but got %d arguments", len(args))
	}
	weighted := command.Flags().Changed("weight")
	if weighted && opts.Gate {
		return s, fmt.Errorf("a row is a gate or has a weight, not both")
	}
	s.Gate = opts.Gate
	if weighted {
		weight, err := strconv.ParseFloat(strings.TrimSpace(opts.Weight), 64)
		if hex, hexErr := strconv.ParseInt(opts.Weight, 0, 64); err != nil && hexErr == nil {
			weight, err = float64(hex), nil
		}
		if err != nil || math.IsNaN(weight) || math.IsInf(weight, 0) || weight < 0 {
			return s, fmt.Errorf("--weight must be a number of at least 0, not %q", opts.Weight)
		}
		s.Weight = &weight
	}
	return s, nil
}

func (a *app) byDiscussion() *cobra.Command {
	var dir string
	command := a.verb("by-discussion DISCUSSION-ID [DIR]", "List the traces of a discussion, oldest first",
		`  fit trace by-discussion D_kwDOAbc123 traces`,
		cobra.RangeArgs(1, 2), func(_ context.Context, out *output, args []string) error {
			from := dir
			if len(args) > 1 {
				from = args[1]
			}
			paths, err := query.ByDiscussion(a.con.Path(from), args[0])
			if err != nil {
				return err
			}
			for _, path := range paths {
				out.line(path)
			}
			return nil
		})
	command.Flags().StringVar(&dir, "trace-dir", "traces", "where to look, if DIR is not given")
	return command
}

func (a *app) validate() *cobra.Command {
	return a.fileVerb("validate", "Validate a trace: every line well-formed and in sequence", `  fit trace validate run.ndjson`,
		func(ctx context.Context, out *output, traces []*query.Trace) error {
			bad := false
			for _, t := range traces {
				found, err := t.Validate(ctx, func(f query.Finding) error {
					return out.record(t.Name(), f, func() {
						out.linef("%s:%d: %s: %s", t.Name(), f.Line, f.Severity, display.Text(f.Message))
					})
				})
				if err != nil {
					return err
				}
				bad = bad || found.Errors > 0
				fmt.Fprintf(a.con.Stderr, "%s: %s, %s, %s\n", t.Name(), report.Count(int(found.Lines), "line"),
					report.Count(found.Errors, "error"), report.Count(found.Warnings, "warning"))
			}
			if out.format == formatJSON {
				if err := out.end(); err != nil {
					return err
				}
			}
			if bad {
				return console.Exit(console.ExitNegative, nil)
			}
			return nil
		})
}
