package benchmarkcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/cli/viewcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/report/metrics"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/view"
	"github.com/fit-eval/fit/ledger"
)

type reportOptions struct {
	older   olderDirs
	k       string
	kChosen bool // by the user
	format  console.Format
	detail  console.Choice
	summary bool
	damaged bool
	labels  string
	metrics string
	gates   gates
	proof   experimentcli.Proof
	from    experimentcli.From
	maxSize console.Count
}

const (
	formatHTML   = "html"   // a page in one file
	formatHarbor = "harbor" // the result.json of a job of Harbor, with its trials
	// a log of Inspect, an output of promptfoo, and a table
	formatInspect   = "inspect"
	formatPromptfoo = "promptfoo"
	formatCSV       = "csv"
)

// writeForeign writes the last attempt at each cell in the format of another harness, the baseline
// first, and says what it cannot hold.
func writeForeign(con *console.Console, format string, found *results.Results) error {
	one := map[string]struct {
		write func(io.Writer, []ledger.Record) error
		lost  string
	}{
		formatHarbor: {
			foreign.Harbor,
			"earlier attempts, verdicts beside scores or an agent's error, tokens written to a " +
				"cache, some phases, turns and the treatment",
		},
		formatInspect: {
			foreign.Inspect,
			"agents, earlier attempts, verdicts beside scores, phases but the agent's, rows and the treatment",
		},
		formatPromptfoo: {
			foreign.Promptfoo,
			"earlier attempts, models, when runs began, turns, phases but the agent's, rows and the treatment",
		},
		formatCSV: {
			foreign.Table,
			"earlier attempts, kinds of tokens, when runs began, turns, phases but the agent's, rows and the treatment",
		},
	}[format]
	last := ledger.Last(found.Records)
	found.InOrder(last)
	if err := one.write(con.Stdout, last); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	fmt.Fprintf(con.Stderr, "note: %s does not hold %s\n", format, one.lost)
	return nil
}

// exportReport writes a page in one file.
func exportReport(ctx context.Context, con *console.Console, registry *agent.Registry, opts *reportOptions,
	dirs []string,
) error {
	cfg, remove, err := viewcli.Config(con, registry.Dialects(), dirs, opts.from.Options())
	if err != nil {
		return err
	}
	cfg.Allow = opts.proof.Allow.List()
	return errors.Join(viewcli.Export(ctx, con.Stdout, cfg, opts.maxSize.Value,
		"fit-benchmark report --format html "+strings.Join(dirs, " ")), remove())
}

const metricsUsage = "also append one line of JSON per arm to this file, for control charts over many experiments; " +
	"existing lines are not repeated"

const kUsage = "the k of pass@k, separated by commas; text leaves out those above the number of runs, and 1, " +
	"which is the pass rate, unless they are named here"

const labelsUsage = "file of human verdicts on judged runs (YAML), used to correct the judge's pass rate " +
	"(default: the family's calibration)"

func newReport(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := reportOptions{
		detail: console.Choice{Value: report.Full, Choices: []string{report.Full, report.Compact}},
	}
	command := &cobra.Command{
		Use:   "report [DIR]...",
		Short: "Show the results of a run directory: pass@k per task and over tasks, with confidence intervals",
		Long: `Show the results of a run directory (default: benchmark-runs), or of a directory of shards: pass@k per
task and over tasks, with confidence intervals. Results of other harnesses are taken in place of a run directory; their
format is recognised by content.`,
		Example: `  fit-benchmark report benchmark-runs --k 1,3,5 --format text
  fit-benchmark report shards --format markdown --summary
  fit-benchmark report benchmark-runs --format harbor > result.json
  fit-benchmark report benchmark-runs --format csv > results.csv
  fit-benchmark report benchmark-runs --format html > report.html`,
		RunE: func(command *cobra.Command, args []string) error {
			dirs := slices.Concat(opts.older.dirs, args)
			if len(dirs) == 0 {
				dirs = []string{defaultOutput}
			}
			opts.kChosen = command.Flags().Changed("k")
			if !command.Flags().Changed("format") && con.StdoutIsTerminal() {
				opts.format.Value = console.FormatText
			}
			return runReport(command.Context(), con, registry, &opts, dirs)
		},
	}
	flags := command.Flags()
	opts.older.register(flags, "input")
	flags.StringVar(&opts.k, "k", "1,3,5", kUsage)
	opts.format.Register(flags, "output format (text on a terminal); metrics is one line of JSON per arm, for charts "+
		"over time; harbor, inspect, promptfoo and csv are what other harnesses write; html is a self-contained file", console.FormatJSON,
		console.FormatText, console.FormatMarkdown, "junit", "metrics", formatHarbor, formatInspect, formatPromptfoo,
		formatCSV, formatHTML)
	opts.maxSize = console.Count{Value: view.DefaultMaxBytes, Min: 1}
	flags.Var(&opts.maxSize, "max-bytes", viewcli.MaxBytesUsage)
	flags.Var(&opts.detail, "detail", "detail of Markdown: full lists every run, compact only the table")
	flags.BoolVar(&opts.summary, "summary", false, "also append the report as Markdown to $GITHUB_STEP_SUMMARY")
	opts.gates.register(flags)
	opts.from.Register(flags)
	opts.proof.Register(flags, console.AllowDrift, console.AllowHistorical, console.AllowUnsigned)
	flags.StringVar(&opts.metrics, "metrics", "", metricsUsage)
	flags.StringVar(&opts.labels, "labels", "", labelsUsage)
	flags.BoolVar(&opts.damaged, "damaged", false, "report the valid lines of a ledger that fails verification")
	return command
}

func runReport(ctx context.Context, con *console.Console, registry *agent.Registry, opts *reportOptions,
	dirs []string,
) error {
	ks, err := parseK(opts.k)
	if err == nil {
		err = checkMetrics(con, opts.metrics)
	}
	if err != nil {
		return err
	}
	found, err := loadResults(con, dirs, opts.damaged, opts.from.Options())
	if err == nil {
		err = found.withLabels(con, opts.labels)
	}
	if err != nil {
		return err
	}
	found.Allow = opts.proof.Allow.List()
	built, err := found.build(ctx, experimentcli.Auditor(con, registry), ks, opts.detail.Value == report.Full)
	if err != nil {
		return err
	}
	if opts.metrics != "" {
		if err := metrics.Append(con.Path(opts.metrics), built); err != nil {
			return err
		}
	}
	if opts.summary {
		write := func(w io.Writer) error { return built.Markdown(w, ks, opts.detail.Value) }
		if err := appendSummary(con, write); err != nil {
			return err
		}
	}
	switch opts.format.Value {
	case formatHarbor, formatInspect, formatPromptfoo, formatCSV:
		err = writeForeign(con, opts.format.Value, found.Results)
	case formatHTML:
		err = exportReport(ctx, con, registry, opts, dirs)
	case console.FormatText:
		shown := shownOf(con, built, ks, opts.kChosen)
		err = con.Folded(func(w io.Writer) error { return built.Text(w, shown) })
	case "markdown":
		err = built.Markdown(con.Stdout, ks, opts.detail.Value)
	case "junit":
		err = built.JUnit(con.Stdout)
	case "metrics":
		err = metrics.Write(con.Stdout, built)
	default:
		err = jsonenc.WriteIndented(con.Stdout, built)
	}
	if err != nil {
		return err
	}
	return opts.gates.check(built, &opts.proof)
}

// shownOf returns those of ks that the text shows. It notes those that were asked for and are not.
func shownOf(con *console.Console, built *report.Report, ks []int, asked bool) []int {
	if !asked {
		return built.WorthShowing(ks, 2)
	}
	shown := built.WorthShowing(ks, 1)
	for _, k := range ks {
		if !slices.Contains(shown, k) {
			fmt.Fprintf(con.Stderr, "note: pass@%d is not shown: no task has %s\n", k, report.Count(k, "run"))
		}
	}
	return shown
}

// checkMetrics refuses, before anything is paid, a file that metrics cannot be appended to.
func checkMetrics(con *console.Console, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(con.Path(path))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isDirectory(filepath.Dir(con.Path(path))):
		return console.Usagef("--metrics %s: there is no directory %s", path, filepath.Dir(path))
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return console.Exit(console.ExitUsage, fmt.Errorf("--metrics: %w", err))
	case !info.Mode().IsRegular():
		return console.Usagef("--metrics %s is not a regular file", path)
	}
	return nil
}

func newMerge(con *console.Console) *cobra.Command {
	var older olderDirs
	var output string
	command := &cobra.Command{
		Use:     "merge DIR...",
		Short:   "Merge the ledgers of shards into one",
		Example: `  fit-benchmark merge shards --output results.jsonl`,
		RunE: func(_ *cobra.Command, args []string) error {
			return runMerge(con, append(older.dirs, args...), output)
		},
	}
	older.register(command.Flags(), "input")
	command.Flags().StringVar(&output, "output", "", "file to write; it must not exist (default: standard output)")
	return command
}

func runMerge(con *console.Console, inputs []string, output string) error {
	if len(inputs) == 0 {
		return console.Usagef("name the run directories of the shards, or a directory of them")
	}
	found, err := loadResults(con, inputs, false, nil)
	if err != nil {
		return err
	}
	// the merged ledger is a new one, in which nobody would see it any more
	if gone := found.SignatureGone(); gone != "" {
		return console.Exitf(console.ExitIncomplete, "merge: %s; merge the directories as they were signed", gone)
	}
	merged, err := ledger.Merge(found.Records)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if len(found.Plans) == 0 {
		found.InOrder(merged)
	}
	if output == "" {
		err = ledger.Write(con.Stdout, merged)
	} else {
		err = found.save(con.Path(output), merged)
	}
	if err != nil || found.Planned == nil || len(found.Planned.Absent) == 0 {
		return err
	}
	return console.Exitf(console.ExitIncomplete, "the merged ledger is incomplete; missing from the results: %s",
		strings.Join(found.Planned.Absent, ", "))
}

// save writes a merged ledger and, where it becomes a run directory's, the plan beside it: without
// the plan nobody sees that runs are missing.
func (all loaded) save(path string, merged []ledger.Record) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return console.Usagef("merge: %s exists already; choose another --output", path)
	}
	if err != nil {
		return console.Exit(console.ExitUsage, fmt.Errorf("merge: %w", err))
	}
	if err := errors.Join(ledger.Write(file, merged), file.Close()); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if all.Planned == nil || filepath.Base(path) != experiment.LedgerFile ||
		isFile(filepath.Join(dir, experiment.PlanFile)) {
		return nil
	}
	whole := *all.Plans[0]
	whole.Shard, whole.SignedBy = experiment.Shard{}, "" // the merged ledger is a new one, which nobody signs
	return experiment.WritePlan(dir, &whole)
}
