package benchmarkcli

import (
	"context"
	"errors"
	"io"
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
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/view"
	"github.com/fit-eval/fit/stats"
)

type compareOptions struct {
	format      console.Format
	measure     console.Choice
	failOn      string
	nonInferior float64
	margin      float64
	alpha       float64
	seed        uint64
	summary     bool
	damaged     bool
	labels      string
	pairs       console.Choice
	maxSize     console.Count

	acrossRevisions bool
	from            experimentcli.From
	proof           experimentcli.Proof
	changed         func(flag string) bool
	// page writes the groups as a page in one file.
	page func([]*report.Group) error
}

// exportComparison writes a page in one file: the run directory, or the comparison of the two sides
// that were named.
func exportComparison(ctx context.Context, con *console.Console, registry *agent.Registry, opts *compareOptions,
	args []string, groups []*report.Group,
) error {
	dirs := []string{}
	for _, arg := range args {
		dir, _ := results.SplitArm(arg, con.Path)
		dirs = append(dirs, dir)
	}
	if len(args) > 1 {
		dirs = nil
	}
	cfg, remove, err := viewcli.Config(con, registry.Dialects(), dirs, opts.from.Options())
	if err != nil {
		return err
	}
	cfg.Allow = opts.proof.Allow.List()
	if len(args) > 1 {
		cfg.Compared = groups
	}
	return errors.Join(viewcli.Export(ctx, con.Stdout, cfg, opts.maxSize.Value,
		"fit-benchmark compare "+strings.Join(args, " ")+" --format html"), remove())
}

// claims are what --fail-on takes.
var claims = []string{
	string(stats.Regressed), "not-proven", string(stats.Insufficient), string(stats.Equivalent),
	string(stats.Improved),
}

// Claims are what --fail-on takes.
func Claims() []string { return slices.Clone(claims) }

func newCompare(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := compareOptions{
		measure: measureChoice(),
		pairs:   pairsChoice(),
	}
	command := &cobra.Command{
		Use:   "compare A [B]",
		Short: "Report whether B is better than A: improved, regressed, or not proven",
		Long: `Report whether B is better than A. Each is a run directory, or DIR:ARM for one arm of it; a directory
with two or more arms needs no second. Results of other harnesses are taken in place of a run directory; their
format is recognised by content.

With more than two arms the answer is one table, corrected for the number of comparisons, and a ranking with the sets
of arms that do not differ significantly.

Arms are compared task by task. The answer is one of improved, regressed, equivalent (with --margin), not proven,
insufficient, with a confidence interval, the cost of the difference, and the minimum detectable difference (80%
power). The treatment line counts the runs whose models were given what was changed, and those that opened it. A claim
is withheld, with the reason, where something else changed during the experiment (drift), no run was given what its arm
brings, an arm was given what only another brings, or runs were answered from the records of another experiment. Two
directories, and results that fit did not run, are not one experiment: their numbers are shown, and nothing is claimed
without --allow historical.`,
		Example: `  fit-benchmark compare benchmark-runs:before benchmark-runs:after
  fit-benchmark compare benchmark-runs --fail-on regressed
  fit-benchmark compare runs/last-month runs/today --allow historical
  fit-benchmark compare before.csv after.csv --columns task=id,pass=ok`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			opts.changed = command.Flags().Changed
			opts.page = func(groups []*report.Group) error {
				return exportComparison(command.Context(), con, registry, &opts, args, groups)
			}
			return runCompare(command.Context(), con, registry, &opts, args)
		},
	}
	flags := command.Flags()
	opts.format.Register(flags, "output format; html is a self-contained file", console.FormatText,
		console.FormatJSON, console.FormatMarkdown, formatHTML)
	opts.maxSize = console.Count{Value: view.DefaultMaxBytes, Min: 1}
	flags.Var(&opts.maxSize, "max-bytes", viewcli.MaxBytesUsage)
	flags.Var(&opts.pairs, "pairs", "with more than two arms: compare all pairs, or all arms with the first")
	flags.BoolVar(&opts.acrossRevisions, "across-revisions", false,
		"compare results of different revisions of the family, whose tasks may differ")
	flags.Var(&opts.measure, "measure", "the measure that decides: pass rate or score")
	flags.StringVar(&opts.failOn, "fail-on", "",
		"gate: exit 1 on these claims, separated by commas: "+strings.Join(claims, ", "))
	flags.Float64Var(&opts.nonInferior, "non-inferior", 0,
		"gate: non-inferiority margin; exit 1 unless B is shown to be at most this much worse than A, e.g. 0.05")
	flags.Float64Var(&opts.margin, "margin", 0,
		"equivalence margin: the largest difference that does not matter; enables the claim \"equivalent\"")
	flags.Float64Var(&opts.alpha, "alpha", stats.DefaultAlpha, "significance level")
	flags.Uint64Var(&opts.seed, "seed", 1, "seed of permutation tests")
	opts.from.Register(flags)
	flags.BoolVar(&opts.summary, "summary", false, "also append the report as Markdown to $GITHUB_STEP_SUMMARY")
	flags.StringVar(&opts.labels, "labels", "", labelsUsage)
	opts.proof.Register(flags, console.AllowDrift, console.AllowHistorical, console.AllowUnsigned)
	flags.BoolVar(&opts.damaged, "damaged", false, "compare the valid lines of ledgers that fail verification")
	return command
}

func runCompare(ctx context.Context, con *console.Console, registry *agent.Registry, opts *compareOptions,
	args []string,
) error {
	failOn := console.List(opts.failOn)
	if opts.changed("fail-on") && len(failOn) == 0 { // such as an unset variable: a gate that is none
		return console.Usagef("--fail-on is empty: name one or more of %s", strings.Join(claims, ", "))
	}
	for _, claim := range failOn {
		if !slices.Contains(claims, claim) {
			return console.Usagef("--fail-on %s: must be one of %s", claim, strings.Join(claims, ", "))
		}
	}
	for name, value := range map[string]float64{
		"alpha":        opts.alpha,
		"margin":       opts.margin,
		"non-inferior": opts.nonInferior,
	} {
		if opts.changed(name) && !(value > 0 && value < 1) { // a zero would be taken for a gate that nobody asked for
			return console.Usagef("--%s %g: must be above 0 and below 1", name, value)
		}
	}
	config := report.CompareConfig{
		Margin:      opts.margin,
		NonInferior: opts.nonInferior,
		Seed:        opts.seed,
		Allow:       opts.proof.Allow.List(),
	}
	if opts.changed("measure") {
		config.Measure = opts.measure.Value
	}
	if opts.changed("alpha") {
		config.Alpha = opts.alpha
	}
	groups, err := sides(ctx, con, registry, args, opts)
	if err != nil {
		return err
	}
	if len(groups) > 2 {
		family, err := report.CompareArms(groups, opts.toBaseline(groups), config)
		if err != nil {
			return console.Exit(console.ExitIncomplete, err)
		}
		if err := opts.print(con, family, groups); err != nil {
			return err
		}
		if err := opts.proof.Check("", family.Treatment); err != nil {
			return err
		}
		for _, pair := range family.Pairs {
			if pair.A != groups[0].Name {
				continue // gates are about the baseline, which is the first arm
			}
			if err := opts.gate(&pair, failOn); err != nil {
				return err
			}
		}
		return nil
	}
	a, b := groups[0], groups[1]
	comparison, err := report.Compare(a, b, config)
	if err != nil {
		return console.Exit(console.ExitIncomplete, err)
	}
	if err := opts.print(con, comparison, groups); err != nil {
		return err
	}
	if err := opts.proof.Check("", comparison.Treatment); err != nil {
		return err
	}
	return opts.gate(&report.ArmPair{
		A:        a.Name,
		B:        b.Name,
		Decision: comparison.Decision,
		Facts:    comparison.Facts,
	}, failOn)
}

// toBaseline reports whether all arms are compared with the first only, as asked for or as planned.
func (o *compareOptions) toBaseline(groups []*report.Group) bool {
	if o.changed("pairs") {
		return o.pairs.Value == experiment.PairsBaseline
	}
	return groups[0].ToBaseline()
}

// sides reads what is compared: A and B, or all arms of a single directory.
func sides(ctx context.Context, con *console.Console, registry *agent.Registry, args []string,
	opts *compareOptions,
) ([]*report.Group, error) {
	reader := results.Reader{
		Resolve:         con.Path,
		Load:            func(dir string) (*results.Results, error) { return opts.load(con, dir) },
		AcrossRevisions: opts.acrossRevisions,
		Build: func(found *results.Results) (*report.Report, error) {
			return loaded{found}.build(ctx, experimentcli.Auditor(con, registry), []int{1}, false)
		},
	}
	groups, err := reader.Sides(args)
	if errors.As(err, new(*results.ChoiceError)) {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return groups, err
}

// load reads one side.
func (o *compareOptions) load(con *console.Console, dir string) (*results.Results, error) {
	found, err := loadResults(con, []string{dir}, o.damaged, o.from.Options())
	if err == nil {
		err = found.withLabels(con, o.labels)
	}
	if err != nil {
		return nil, err
	}
	found.Allow = o.proof.Allow.List()
	return found.Results, nil
}

// comparison is what compare prints.
type comparison interface {
	Text(w io.Writer) error
	Markdown(w io.Writer) error
}

// comparisonOf compares the arms of a report; nil where there is only one.
func comparisonOf(built *report.Report, cfg report.CompareConfig) (comparison, error) {
	comparison, family, err := results.Answer(built, cfg)
	switch {
	case comparison != nil:
		return comparison, err
	case family != nil:
		return family, err
	}
	return nil, err
}

func (o *compareOptions) print(con *console.Console, c comparison, groups []*report.Group) error {
	if o.summary {
		if err := appendSummary(con, c.Markdown); err != nil {
			return err
		}
	}
	switch o.format.Value {
	case "json":
		return jsonenc.WriteIndented(con.Stdout, c)
	case formatHTML:
		return o.page(groups)
	case "markdown":
		return c.Markdown(con.Stdout)
	default:
		return con.Folded(c.Text)
	}
}

// gate turns a decision into an exit code. A gate does not pass where claims are withheld: nobody
// knows what it would have said.
func (o *compareOptions) gate(pair *report.ArmPair, failOn []string) error {
	decision, a, b := &pair.Decision, pair.A, pair.B
	for _, reason := range pair.Withheld {
		if reason.StopsGates() && (len(failOn) > 0 || decision.NonInferior != nil) {
			return console.Exitf(console.ExitNegative, "gate of %s and %s: withheld because %s", a, b,
				reason.Sentence())
		}
	}
	claim := strings.ReplaceAll(string(decision.Claim), " ", "-")
	if slices.Contains(failOn, claim) {
		return console.Exitf(console.ExitNegative, "gate --fail-on %s: %s", claim, decision.Sentence)
	}
	for _, possible := range decision.Possible {
		if claim := strings.ReplaceAll(string(possible), " ", "-"); slices.Contains(failOn, claim) {
			return console.Exitf(console.ExitNegative,
				"gate --fail-on %s: runs without a certain outcome could make it that: %s", claim, decision.Sentence)
		}
	}
	if answer := decision.NonInferior; answer != nil && !answer.Shown {
		return console.Exitf(console.ExitNegative, "gate --non-inferior %g: not shown that %s is at most %g worse "+
			"than %s: %s", answer.Margin, b, answer.Margin, a, answer.Text())
	}
	return nil
}
