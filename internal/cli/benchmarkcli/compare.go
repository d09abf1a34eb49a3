package benchmarkcli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/report"
	"github.com/fit-eval/fit/stats"
)

type compareOptions struct {
	format      console.Choice
	measure     console.Choice
	failOn      string
	nonInferior float64
	margin      float64
	alpha       float64
	seed        uint64
	summary     bool
	damaged     bool
	labels      string
}

// claims are what --fail-on takes.
var claims = []string{string(stats.Regressed), "not-proven", string(stats.Insufficient), string(stats.Equivalent),
	string(stats.Improved)}

func newCompare(con *console.Console) *cobra.Command {
	opts := compareOptions{format: console.Choice{Value: "text", Choices: []string{"text", "json", "markdown"}},
		measure: console.Choice{Value: report.MeasurePass, Choices: []string{report.MeasurePass, report.MeasureScore}}}
	command := &cobra.Command{
		Use:   "compare A B",
		Short: "Report whether B is better than A: improved, regressed, or not proven",
		Long: `Report whether B is better than A. Each is a run directory, or DIR:ARM for one arm of it; a directory with exactly two arms may stand alone.

Arms are compared task by task. The answer is one of improved, regressed, equivalent (with --margin), not proven, insufficient, with an interval, what the
difference costs, and the smallest difference that an experiment of this size would have found.`,
		Example: `  fit-benchmark compare benchmark-runs:before benchmark-runs:after
  fit-benchmark compare runs/main runs/pull-request --fail-on regressed --non-inferior 0.05`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error { return runCompare(con, &opts, args) },
	}
	flags := command.Flags()
	flags.Var(&opts.format, "format", "output format")
	flags.Var(&opts.measure, "measure", "what decides: pass rate, or score")
	flags.StringVar(&opts.failOn, "fail-on", "",
		"gate: exit 1 on these claims, separated by commas: "+strings.Join(claims, ", "))
	flags.Float64Var(&opts.nonInferior, "non-inferior", 0,
		"gate: exit 1 unless B is at most this much worse than A, such as 0.05")
	flags.Float64Var(&opts.margin, "margin", 0,
		"largest difference that does not matter; makes the claim equivalent possible")
	flags.Float64Var(&opts.alpha, "alpha", stats.DefaultAlpha, "significance level")
	flags.Uint64Var(&opts.seed, "seed", 1, "seed of permutation tests")
	flags.BoolVar(&opts.summary, "summary", false, "also append it as Markdown to $GITHUB_STEP_SUMMARY")
	flags.StringVar(&opts.labels, "labels", "", labelsUsage)
	flags.BoolVar(&opts.damaged, "damaged", false, "compare what is left of ledgers that do not verify")
	return command
}

func runCompare(con *console.Console, opts *compareOptions, args []string) error {
	failOn := console.List(opts.failOn)
	for _, claim := range failOn {
		if !slices.Contains(claims, claim) {
			return console.Usagef("--fail-on %s: want one of %s", claim, strings.Join(claims, ", "))
		}
	}
	if opts.nonInferior < 0 || opts.nonInferior >= 1 || opts.margin < 0 || opts.margin >= 1 ||
		!(opts.alpha > 0 && opts.alpha < 1) {
		return console.Usagef("--non-inferior and --margin are shares from 0 to 1, --alpha lies between them")
	}
	a, b, err := sides(con, args, opts)
	if err != nil {
		return err
	}
	if a.Name == b.Name {
		a.Name, b.Name = args[0], args[len(args)-1]
	}
	comparison, err := report.Compare(a, b, report.CompareConfig{
		Measure: opts.measure.Value,
		Alpha:   opts.alpha,
		Margin:  opts.margin,
		Seed:    opts.seed,
	})
	if err != nil {
		return console.Exit(console.ExitIncomplete, err)
	}
	if err := opts.print(con, comparison); err != nil {
		return err
	}
	return opts.gate(comparison, failOn)
}

// sides reads A and B; a single directory with two arms is both.
func sides(con *console.Console, args []string, opts *compareOptions) (a, b *report.Group, err error) {
	if len(args) == 2 {
		if a, err = parseSide(con, args[0]).group(con, opts.labels, opts.damaged); err != nil {
			return nil, nil, err
		}
		b, err = parseSide(con, args[1]).group(con, opts.labels, opts.damaged)
		return a, b, err
	}
	found, err := loadResults(con, args, opts.damaged)
	if err == nil {
		err = found.withLabels(con, opts.labels)
	}
	if err != nil {
		return nil, nil, err
	}
	built, err := found.build([]int{1}, false)
	if err != nil {
		return nil, nil, err
	}
	if len(built.Groups) != 2 {
		return nil, nil, console.Usagef("%s has %d arms; name two: %s:ARM %s:ARM", args[0], len(built.Groups), args[0],
			args[0])
	}
	return &built.Groups[0], &built.Groups[1], nil
}

func (o *compareOptions) print(con *console.Console, c *report.Comparison) error {
	if o.summary {
		if err := appendSummary(con, func(w io.Writer) error { return c.Markdown(w) }); err != nil {
			return err
		}
	}
	switch o.format.Value {
	case "json":
		return jsonenc.WriteIndented(con.Stdout, c)
	case "markdown":
		return c.Markdown(con.Stdout)
	default:
		return c.Text(con.Stdout)
	}
}

func (o *compareOptions) gate(c *report.Comparison, failOn []string) error {
	claim := strings.ReplaceAll(string(c.Decision.Claim), " ", "-")
	if slices.Contains(failOn, claim) {
		return console.Exitf(console.ExitNegative, "gate --fail-on %s: %s", claim, c.Decision.Sentence)
	}
	if o.nonInferior > 0 && !c.NonInferior(o.nonInferior) {
		return console.Exitf(console.ExitNegative,
			"gate --non-inferior %g: B may be more than %g worse than A", o.nonInferior, o.nonInferior)
	}
	return nil
}
