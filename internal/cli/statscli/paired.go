package statscli

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// pairedOptions are the flags of `fit stats paired`.
type pairedOptions struct {
	Baseline      string
	Kind          string
	LowerIsBetter bool
	Sequential    bool
	Interval      string
	Alpha, Margin float64
	Seed          uint64

	AcrossRevisions bool

	from     experimentcli.From
	dialects session.Dialects
}

// armResult is one side of a comparison.
type armResult struct {
	Name string  `json:"name"`
	Mean float64 `json:"mean"`
}

// pairedResult is the JSON of `fit stats paired`. Est, Lo and Hi are candidate minus baseline; for
// ratios they are ratios, and log values stand in Effect. Lo and Hi are null where the data allow
// no interval.
type pairedResult struct {
	Est            float64     `json:"est"`
	Lo             *float64    `json:"lo"`
	Hi             *float64    `json:"hi"`
	Level          float64     `json:"level"`
	P              float64     `json:"p"`
	PAdj           float64     `json:"pAdj"`
	PMid           *float64    `json:"pMid,omitempty"`
	EValue         *float64    `json:"eValue"`
	Method         string      `json:"method"`
	IntervalMethod string      `json:"intervalMethod"`
	Reason         string      `json:"reason"`
	Claim          stats.Claim `json:"claim"`
	Sentence       string      `json:"sentence"`
	Obstacles      []string    `json:"obstacles,omitempty"`
	MDE            float64     `json:"mde"`
	Effect         float64     `json:"effect"`
	SD             float64     `json:"sd"`
	SE             float64     `json:"se"`
	T              *float64    `json:"t,omitempty"`
	PT             *float64    `json:"pT,omitempty"`
	Candidate      armResult   `json:"candidate"`
	Baseline       armResult   `json:"baseline"`
	NTasks         int         `json:"nTasks"`
	NRuns          int         `json:"nRuns"`
	NClusters      int         `json:"nClusters"`
	NUnpaired      int         `json:"nUnpaired"`
	Wins           int         `json:"wins"`
	Losses         int         `json:"losses"`
	Ties           int         `json:"ties"`
	Warnings       []string    `json:"warnings,omitempty"`
}

func newPaired(con *console.Console, options *statsOptions, dialects session.Dialects) *cobra.Command {
	flags := pairedOptions{dialects: dialects}
	cmd := &cobra.Command{
		Use:   "paired FILE | A B",
		Short: "Report whether one arm is better, from two columns per task",
		Long: `Compares two arms that ran the same tasks. FILE ("-" is standard input) has one
row per task with the outcomes of both arms, separated by commas, tabs, semicolons
or spaces; a header row, a first column with the name of the task, and columns
headed "cluster" and "stratum" are optional. A cell is a number or pass/fail, or
several runs as 1/0/1; rows with the same task name are runs of one task.

The difference is the first column minus the second, which is the baseline, unless
the header calls the first column baseline, base, before, old or control, or
--baseline says otherwise.

The method follows from the data: the exact McNemar test with the Bonett-Price
interval for one pass/fail run per task, else a sign-flip permutation test with
Student's interval over tasks, robust to clusters. --sequential uses an e-process
instead, which stays valid if you look after every task. The claim needs 10 tasks, p below
alpha and an interval that excludes zero.

A and B are run directories, or results of another harness, each with :ARM where it has
several arms. B is then compared with A, as by fit-benchmark compare --allow historical.`,
		Example: `  fit stats paired results.csv
  fit stats paired --kind ratio --lower-is-better costs.tsv
  fit stats paired before.eval after.eval --scorer match
  printf 'task,before,after\nt1,0/0/1,1/1/1\nt2,0/1/0,1/1/0\n' | fit stats paired -`,
		Args: oneFileOrSides,
		RunE: func(cmd *cobra.Command, args []string) error {
			var result pairedResult
			err := flags.check()
			switch {
			case err != nil:
			case areSides(con, args):
				result, err = compareSides(cmd, con, args, &flags)
			default:
				result, err = comparePaired(con, args[0], flags, options.Level)
			}
			if err != nil {
				return err
			}
			return emit(con, options, result, func(w io.Writer) { writePaired(w, result) })
		},
	}
	cmd.Flags().StringVar(&flags.Baseline, "baseline", "",
		"which column is the baseline: first or second (default second, or by its header)")
	cmd.Flags().StringVar(&flags.Kind, "kind", "",
		"rate (in points), score (as is) or ratio (cost, time; in percent); default: rate if all "+
			"values lie between 0 and 1")
	cmd.Flags().BoolVar(&flags.LowerIsBetter, "lower-is-better", false, "a smaller value is an improvement")
	cmd.Flags().BoolVar(&flags.Sequential, "sequential", false,
		"sequential analysis: use an e-process, which remains valid under optional stopping (rows in planned order)")
	cmd.Flags().StringVar(&flags.Interval, "interval", "",
		"force the confidence interval: t, bootstrap-bca or bootstrap-percentile")
	cmd.Flags().Float64Var(&flags.Alpha, "alpha", stats.DefaultAlpha, "significance level of the claim")
	cmd.Flags().Float64Var(&flags.Margin, "margin", 0,
		"equivalence margin: the largest difference that does not matter (a logarithm for ratios)")
	cmd.Flags().Uint64Var(&flags.Seed, "seed", 1, "seed of random permutations and resamples")
	cmd.Flags().BoolVar(&flags.AcrossRevisions, "across-revisions", false,
		"compare results of different revisions of the family, whose tasks may differ")
	flags.from.Register(cmd.Flags())
	return cmd
}

func comparePaired(con *console.Console, path string, flags pairedOptions, level float64) (pairedResult, error) {
	rows, err := readTable(con, path)
	if err != nil {
		return pairedResult{}, err
	}
	table, err := newPairedTable(rows)
	if err != nil {
		return pairedResult{}, console.Usagef("%s: %w", path, err)
	}
	pairs, candidate, baseline := table.arms(flags.Baseline)
	if flags.Kind, err = kindOf(flags.Kind, pairs); err != nil {
		return pairedResult{}, console.Usagef("%s: %w", path, err)
	}
	config := stats.CompareConfig{Level: level, Seed: flags.Seed, Interval: flags.Interval}
	compare := stats.Compare
	switch {
	case flags.Sequential:
		compare = stats.CompareSequential
	case flags.Kind == string(stats.Ratio):
		compare = stats.CompareRatio
	}
	comparison, err := compare(pairs, config)
	if err != nil {
		return pairedResult{}, console.Usagef("%s: %w", path, err)
	}
	decide := stats.DecideConfig{
		Alpha:  flags.Alpha,
		Margin: flags.Margin,
		Measure: stats.Measure{
			Name:          map[string]string{"rate": "", "score": "score", "ratio": "value"}[flags.Kind],
			Kind:          stats.Kind(flags.Kind),
			LowerIsBetter: flags.LowerIsBetter,
			Candidate:     candidate,
			Baseline:      baseline,
		},
	}
	if comparison.Unpaired > 0 {
		decide.Unsure = fmt.Sprintf("%d tasks with runs of one arm only", comparison.Unpaired)
		if flags.Kind != string(stats.Rate) {
			decide.Withheld = []string{decide.Unsure + " could have had any value for the other"}
		}
	}
	for _, worst := range worstCases(flags.Kind, comparison, pairs) {
		filled, err := compare(worst, config)
		if err != nil {
			return pairedResult{}, console.Usagef("%s: %w", path, err)
		}
		decide.WorstCases = append(decide.WorstCases, filled)
	}
	decision, err := stats.Decide(comparison, decide)
	if err != nil {
		return pairedResult{}, console.Usagef("%s: %w", path, err)
	}
	return newPairedResult(comparison, decision, candidate, baseline), nil
}

// worstCases fills in the rates that tasks with runs of one arm only have not got, against one arm
// and against the other: a task that is left out in the right place looks like a difference.
func worstCases(kind string, comparison stats.Comparison, pairs []stats.Pair) [][]stats.Pair {
	if comparison.Unpaired == 0 || kind != string(stats.Rate) {
		return nil
	}
	cases := make([][]stats.Pair, 2)
	for i := range cases {
		candidate, baseline := float64(i), float64(1-i)
		for _, pair := range pairs {
			if len(pair.Candidate) == 0 {
				pair.Candidate = slices.Repeat([]float64{candidate}, len(pair.Baseline))
			}
			if len(pair.Baseline) == 0 {
				pair.Baseline = slices.Repeat([]float64{baseline}, len(pair.Candidate))
			}
			cases[i] = append(cases[i], pair)
		}
	}
	return cases
}

func (o pairedOptions) check() error {
	switch {
	case o.Baseline != "" && o.Baseline != "first" && o.Baseline != "second":
		return console.Usagef("paired: --baseline must be first or second, not %q", o.Baseline)
	case o.Kind != "" && !slices.Contains([]string{"rate", "score", "ratio"}, o.Kind):
		return console.Usagef("paired: --kind must be rate, score or ratio, not %q", o.Kind)
	case o.Interval != "" && !slices.Contains([]string{stats.MethodT, stats.MethodBCa, stats.MethodPercentile},
		o.Interval):
		return console.Usagef("paired: --interval must be %s, %s or %s, not %q", stats.MethodT, stats.MethodBCa,
			stats.MethodPercentile, o.Interval)
	case o.Sequential && o.Kind == "ratio":
		return console.Usagef("paired: --sequential needs outcomes between 0 and 1, not ratios")
	case !(o.Alpha > 0 && o.Alpha < 1):
		return console.Usagef("paired: alpha must be above 0 and below 1, not %v", o.Alpha)
	}
	return nil
}

// kindOf takes values for pass rates where they can be, and for scores where not.
func kindOf(wanted string, pairs []stats.Pair) (string, error) {
	if wanted != "" && wanted != string(stats.Rate) {
		return wanted, nil
	}
	for i, pair := range pairs {
		for _, value := range append(slices.Clone(pair.Candidate), pair.Baseline...) {
			// what is not a number is refused by whoever computes with it
			if value >= 0 && value <= 1 || math.IsNaN(value) || math.IsInf(value, 0) {
				continue
			}
			if wanted == "" {
				return string(stats.Score), nil
			}
			return "", fmt.Errorf("%s: value must be a number between 0 and 1 for --kind rate, not %v",
				taskName(pair.Task, i), value)
		}
	}
	return string(stats.Rate), nil
}

func newPairedResult(comparison stats.Comparison, decision stats.Decision, candidate, baseline string) pairedResult {
	result := pairedResult{
		Est:            comparison.Est,
		Lo:             decision.Lo,
		Hi:             decision.Hi,
		Level:          decision.Level,
		P:              decision.P,
		PAdj:           decision.PAdj,
		PMid:           comparison.PMid,
		EValue:         decision.EValue,
		Method:         decision.Method,
		IntervalMethod: decision.Interval,
		Reason:         comparison.Reason,
		Claim:          decision.Claim,
		Sentence:       decision.Sentence,
		Obstacles:      decision.Obstacles,
		MDE:            decision.MDE,
		Effect:         comparison.Est,
		SD:             comparison.SD,
		SE:             comparison.SE,
		T:              comparison.T,
		PT:             comparison.PT,
		Candidate:      armResult{candidate, comparison.CandidateMean},
		Baseline:       armResult{baseline, comparison.BaselineMean},
		NTasks:         comparison.Tasks,
		NRuns:          comparison.Runs,
		NClusters:      comparison.Clusters,
		NUnpaired:      comparison.Unpaired,
		Wins:           comparison.Wins,
		Losses:         comparison.Losses,
		Ties:           comparison.Ties,
		Warnings:       comparison.Warnings,
	}
	if ratio, ok := comparison.RatioInterval(); comparison.Ratio {
		result.Est = ratio.Est
		if ok {
			result.Lo, result.Hi = &ratio.Lo, &ratio.Hi
		}
	}
	return result
}

func writePaired(w io.Writer, result pairedResult) {
	fmt.Fprintln(w, result.Sentence)
	fmt.Fprintf(w, "\n%s (mean %.4f) against %s (mean %.4f): %d won, %d lost, %d tied\n",
		result.Candidate.Name, result.Candidate.Mean, result.Baseline.Name, result.Baseline.Mean,
		result.Wins, result.Losses, result.Ties)
	fmt.Fprintf(w, "estimate   %.6f\n", result.Est)
	if result.Lo != nil {
		fmt.Fprintf(w, "interval   %.6f to %.6f (%s, %s)\n", *result.Lo, *result.Hi, levelName(result.Level),
			result.IntervalMethod)
	}
	fmt.Fprintf(w, "p          %.6f (%s: %s)\n", result.P, result.Method, result.Reason)
	if result.PMid != nil {
		fmt.Fprintf(w, "mid-p      %.6f\n", *result.PMid)
	}
	if result.EValue != nil {
		fmt.Fprintf(w, "e-value    %.4g\n", *result.EValue)
	}
	fmt.Fprintf(w, "detectable %.6f (minimum detectable effect, 80%% power)\n", result.MDE)
	warn(w, result.Warnings)
}
