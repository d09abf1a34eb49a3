package statscli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// proportionResult is the JSON of `fit stats proportion`.
type proportionResult struct {
	stats.Interval
	K int `json:"k"`
	N int `json:"n"`
}

func newProportion(con *console.Console, options *statsOptions) *cobra.Command {
	var k, n int
	var method string
	cmd := &cobra.Command{
		Use:   "proportion --k K --n N",
		Short: "Show the confidence interval for K successes in N independent trials",
		Long: `The interval for a pass rate, from independent trials (one run per task).

  wilson           the score interval, right on average at every N (default)
  clopper-pearson  the exact interval: never covers less than its level, and is wider
  jeffreys         the Bayesian interval under a Beta(1/2, 1/2) prior`,
		Example: `  fit stats proportion --k 13 --n 37
  fit stats proportion --k 13 --n 37 --method clopper-pearson --format json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needFlags(cmd, "k", "n"); err != nil {
				return err
			}
			interval, err := stats.Proportion(k, n, options.Level, method)
			if err != nil {
				return refused(cmd, err)
			}
			return emit(con, options, proportionResult{interval, k, n}, func(w io.Writer) {
				fmt.Fprintf(w, "%d of %d = %s, %s %s to %s (%s)\n", k, n, percent(interval.Est),
					levelName(interval.Level), percent(interval.Lo), percent(interval.Hi), interval.Method)
			})
		},
	}
	cmd.Flags().IntVar(&k, "k", 0, "number of successes")
	cmd.Flags().IntVar(&n, "n", 0, "number of trials")
	cmd.Flags().StringVar(&method, "method", stats.MethodWilson, "wilson, clopper-pearson or jeffreys")
	return cmd
}

// differenceResult is the JSON of `fit stats difference`.
type differenceResult struct {
	stats.Interval
	K     int `json:"k"`
	N     int `json:"n"`
	BaseK int `json:"baseK"`
	BaseN int `json:"baseN"`
}

func newDifference(con *console.Console, options *statsOptions) *cobra.Command {
	var given differenceResult
	cmd := &cobra.Command{
		Use:   "difference --k K --n N --base-k K --base-n N",
		Short: "Show the confidence interval for the difference of two independent pass rates",
		Long: `The interval for the difference of two pass rates from independent trials, such as the runs of two arms
on one task: Newcombe's method 10, from the Wilson intervals of both. fit view draws it beside each task.

Over several tasks arms are paired: use fit stats paired.`,
		Example: `  fit stats difference --k 3 --n 3 --base-k 1 --base-n 3`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needFlags(cmd, "k", "n", "base-k", "base-n"); err != nil {
				return err
			}
			first, err := stats.Proportion(given.K, given.N, options.Level, stats.MethodWilson)
			if err != nil {
				return refused(cmd, err)
			}
			base, err := stats.Proportion(given.BaseK, given.BaseN, options.Level, stats.MethodWilson)
			if err != nil {
				return refused(cmd, err)
			}
			given.Interval = stats.NewcombeUnpaired(first, base)
			return emit(con, options, given, func(w io.Writer) {
				fmt.Fprintf(w, "%d of %d against %d of %d = %+.1f points, ", given.K, given.N, given.BaseK, given.BaseN,
					100*given.Est)
				fmt.Fprintf(w, "%s %+.1f to %+.1f points (%s)\n", levelName(given.Level), 100*given.Lo, 100*given.Hi,
					given.Method)
			})
		},
	}
	cmd.Flags().IntVar(&given.K, "k", 0, "number of successes")
	cmd.Flags().IntVar(&given.N, "n", 0, "number of trials")
	cmd.Flags().IntVar(&given.BaseK, "base-k", 0, "number of successes of the other side, which is subtracted")
	cmd.Flags().IntVar(&given.BaseN, "base-n", 0, "number of trials of the other side")
	return cmd
}

// passKRow is one value of k. Where k > n the two estimates are the error object of the report
// format.
type passKRow struct {
	K        int `json:"k"`
	PassAtK  any `json:"passAtK"`
	PassHatK any `json:"passHatK"`
	// Lo and Hi surround pass@k, HatLo and HatHi pass^k.
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	HatLo *float64 `json:"hatLo"`
	HatHi *float64 `json:"hatHi"`
}

// passKResult repeats the row of the first k at the top.
type passKResult struct {
	N   int `json:"n"`
	C   int `json:"c"`
	Est any `json:"est"`
	passKRow
	Method   string     `json:"method"`
	Level    float64    `json:"level"`
	Rows     []passKRow `json:"rows"`
	Warnings []string   `json:"warnings,omitempty"`
}

func newPassK(con *console.Console, options *statsOptions) *cobra.Command {
	var n, c int
	var ks []int
	cmd := &cobra.Command{
		Use:   "passk --n N --c C --k K[,K...]",
		Short: "Show pass@k and pass^k of a task from N runs of which C passed",
		Long: `pass@k is the chance that at least one of k runs passes, 1 - C(n-c,k)/C(n,k);
pass^k is the chance that all k pass, C(c,k)/C(n,k). Both are unbiased and need
n >= k. The limits are Wilson limits of the pass rate put through the formula.`,
		Example: `  fit stats passk --n 10 --c 3 --k 5
  fit stats passk --n 10 --c 3 --k 1,3,5 --format json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needFlags(cmd, "n", "c", "k"); err != nil {
				return err
			}
			result, err := passK(n, c, ks, options.Level)
			if err != nil {
				return refused(cmd, err)
			}
			return emit(con, options, result, func(w io.Writer) { writePassK(w, result) })
		},
	}
	cmd.Flags().IntVar(&n, "n", 0, "number of runs")
	cmd.Flags().IntVar(&c, "c", 0, "number of runs that passed")
	cmd.Flags().IntSliceVar(&ks, "k", nil, "one or more numbers of tries")
	return cmd
}

func passK(n, c int, ks []int, level float64) (passKResult, error) {
	result := passKResult{
		N:      n,
		C:      c,
		Method: stats.MethodWilson,
		Level:  level,
	}
	tooLarge := map[string]string{"error": stats.ErrKExceedsN.Error()}
	var firstTooLarge error
	estimated := 0
	for _, k := range ks {
		row := passKRow{K: k, PassAtK: tooLarge, PassHatK: tooLarge}
		best, err := stats.PassAtKInterval(n, c, k, level)
		if errors.Is(err, stats.ErrKExceedsN) {
			result.Rows = append(result.Rows, row)
			if firstTooLarge == nil {
				firstTooLarge = err
			}
			continue
		}
		if err != nil {
			return passKResult{}, err
		}
		all, err := stats.PassHatKInterval(n, c, k, level)
		if err != nil {
			return passKResult{}, err
		}
		estimated++
		row.PassAtK, row.PassHatK = best.Est, all.Est
		row.Lo, row.Hi, row.HatLo, row.HatHi = &best.Lo, &best.Hi, &all.Lo, &all.Hi
		result.Rows = append(result.Rows, row)
		if 2*k > n && k > 1 {
			result.Warnings = append(result.Warnings,
				fmt.Sprintf("k = %d is more than half of n = %d: the estimate saturates", k, n))
		}
	}
	switch {
	case len(ks) == 0:
		return passKResult{}, fmt.Errorf("no k given")
	case estimated == 0:
		return passKResult{}, firstTooLarge
	}
	result.passKRow, result.Est = result.Rows[0], result.Rows[0].PassAtK
	return result, nil
}

func writePassK(w io.Writer, result passKResult) {
	fmt.Fprintf(w, "%d of %s passed\n", result.C, report.Count(result.N, "run"))
	for _, row := range result.Rows {
		if row.Lo == nil {
			fmt.Fprintf(w, "pass@%d  %s\npass^%d  %s\n", row.K, stats.ErrKExceedsN, row.K, stats.ErrKExceedsN)
			continue
		}
		name := levelName(result.Level)
		fmt.Fprintf(w, "pass@%d  %.6f  %s %.4f to %.4f\n", row.K, row.PassAtK, name, *row.Lo, *row.Hi)
		fmt.Fprintf(w, "pass^%d  %.6f  %s %.4f to %.4f\n", row.K, row.PassHatK, name, *row.HatLo, *row.HatHi)
	}
	warn(w, result.Warnings)
}
