package statscli

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/stats"
)

// areSides reports whether the arguments are run directories or results of other harnesses, and not
// one file with two columns of numbers.
func areSides(con *console.Console, args []string) bool {
	path := con.Path(args[0])
	found, _ := results.Find(path) // a file has none
	info, err := os.Stat(path)
	return len(args) == 2 || len(found) > 0 || results.IsLedger(path) ||
		err == nil && info.IsDir() && foreign.Format(path) != ""
}

// onlyColumns are the flags about two columns of numbers; runs have none of these choices.
var onlyColumns = []string{"baseline", "lower-is-better", "sequential", "interval", "level"}

// compareSides compares runs like fit-benchmark compare --allow historical: B with A, or the two
// arms of a directory.
func compareSides(cmd *cobra.Command, con *console.Console, args []string, flags *pairedOptions,
) (pairedResult, error) {
	for _, name := range onlyColumns {
		if cmd.Flags().Changed(name) {
			return pairedResult{}, console.Usagef("paired: --%s is about a file with two columns of numbers", name)
		}
	}
	config := report.CompareConfig{
		Margin: flags.Margin,
		Seed:   flags.Seed,
		Allow:  []string{console.AllowHistorical},
	}
	if cmd.Flags().Changed("alpha") {
		config.Alpha = flags.Alpha
	}
	switch flags.Kind {
	case string(stats.Rate):
		config.Measure = report.MeasurePass
	case string(stats.Score):
		config.Measure = report.MeasureScore
	case string(stats.Ratio):
		return pairedResult{}, console.Usagef("paired: --kind ratio is about a file with two columns of numbers; " +
			"fit-benchmark compare shows the ratios of cost and time")
	}
	groups, err := sidesOf(cmd.Context(), con, args, flags)
	if err != nil {
		return pairedResult{}, console.Exit(console.ExitUsage, err)
	}
	pair, err := report.NewPair(groups[0], groups[1], config)
	if err != nil {
		return pairedResult{}, console.Exit(console.ExitUsage, err)
	}
	decision, err := stats.Decide(pair.Comparison, pair.Config)
	if err != nil {
		return pairedResult{}, console.Exit(console.ExitUsage, err)
	}
	result := newPairedResult(pair.Comparison, decision, groups[1].Name, groups[0].Name)
	for _, reason := range pair.Allowed {
		result.Warnings = append(result.Warnings, reason.Text)
	}
	for _, g := range groups {
		if g.Imported != "" {
			result.Warnings = append(result.Warnings, g.Name+" is "+g.Imported)
		}
		for _, warning := range g.Warnings {
			if !slices.Contains(result.Warnings, warning) {
				result.Warnings = append(result.Warnings, warning)
			}
		}
	}
	result.Warnings = append(result.Warnings, pair.Warnings()...)
	return result, nil
}

func sidesOf(ctx context.Context, con *console.Console, args []string, flags *pairedOptions,
) ([]*report.Group, error) {
	reader := results.Reader{
		Resolve:         con.Path,
		AcrossRevisions: flags.AcrossRevisions,
		Load: func(dir string) (*results.Results, error) {
			found, err := results.Load([]string{con.Path(dir)}, false, flags.from.Options())
			if err == nil {
				found.Allow = []string{console.AllowHistorical}
			}
			return found, err
		},
		Build: func(found *results.Results) (*report.Report, error) {
			return found.Build(ctx, results.Auditor{Dialects: flags.dialects, Prices: con.Prices()}, []int{1}, false)
		},
	}
	groups, err := reader.Sides(args)
	if err == nil && len(groups) != 2 {
		err = console.Usagef("%s has %d arms; choose two: %s:%s %s:%s", args[0], len(groups), args[0], groups[0].Name,
			args[0], groups[1].Name)
	}
	return groups, err
}
