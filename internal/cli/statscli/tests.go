package statscli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/stats"
)

// mcnemarResult is the JSON of `fit stats mcnemar`; the interval needs --n.
type mcnemarResult struct {
	stats.McNemarResult
	EValue float64  `json:"eValue"`
	Method string   `json:"method"`
	N      *int     `json:"n,omitempty"`
	Est    *float64 `json:"est,omitempty"`
	Lo     *float64 `json:"lo,omitempty"`
	Hi     *float64 `json:"hi,omitempty"`
	Level  *float64 `json:"level,omitempty"`
}

func newMcNemar(con *console.Console, options *statsOptions) *cobra.Command {
	var b, c, n int
	cmd := &cobra.Command{
		Use:   "mcnemar --b B --c C [--n N]",
		Short: "Test two arms, from the tasks only one of them passed",
		Long: `The exact McNemar test for one run per arm and task: B tasks were passed by the
first arm only, C by the second only. p never exceeds its level and decides; pMid
is closer to the nominal level and is only informative. With --n, the number of tasks,
the Bonett-Price interval for the difference of the pass rates is added. The
e-value stays valid if you look at it after every task (stop at 20).`,
		Example: `  fit stats mcnemar --b 9 --c 2
  fit stats mcnemar --b 9 --c 2 --n 50 --format json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needFlags(cmd, "b", "c"); err != nil {
				return err
			}
			test, err := stats.McNemar(b, c)
			if err != nil {
				return refused(cmd, err)
			}
			evidence, err := stats.DiscordantEValue(b, c)
			if err != nil {
				return refused(cmd, err)
			}
			result := mcnemarResult{McNemarResult: test, EValue: evidence, Method: stats.MethodMcNemar}
			if cmd.Flags().Changed("n") {
				interval, err := stats.BonettPrice(b, c, n, options.Level)
				if err != nil {
					return refused(cmd, err)
				}
				result.N, result.Est, result.Level = &n, &interval.Est, &interval.Level
				result.Lo, result.Hi = &interval.Lo, &interval.Hi
			}
			return emit(con, options, result, func(w io.Writer) { writeMcNemar(w, result) })
		},
	}
	cmd.Flags().IntVar(&b, "b", 0, "tasks only the first arm passed")
	cmd.Flags().IntVar(&c, "c", 0, "tasks only the second arm passed")
	cmd.Flags().IntVar(&n, "n", 0, "tasks in all, for the confidence interval")
	return cmd
}

func writeMcNemar(w io.Writer, result mcnemarResult) {
	fmt.Fprintf(w, "%d against %d discordant tasks: p = %.6f, mid-p = %.6f, e = %.4g (%s)\n", result.B, result.C,
		result.P, result.PMid, result.EValue, result.Method)
	if result.Est != nil {
		fmt.Fprintf(w, "difference %+.1f points, %s %+.1f to %+.1f points (%s)\n", 100**result.Est,
			levelName(*result.Level), 100**result.Lo, 100**result.Hi, stats.MethodBonettPrice)
	}
}

// adjustResult is the JSON of `fit stats adjust`.
type adjustResult struct {
	P    []float64 `json:"p"`
	Holm []float64 `json:"holm"`
	BH   []float64 `json:"bh"`
}

func newAdjust(con *console.Console, options *statsOptions) *cobra.Command {
	var ps []float64
	cmd := &cobra.Command{
		Use:   "adjust --p P[,P...]",
		Short: "Correct p-values for the number of tests: Holm and Benjamini-Hochberg",
		Long: `Holm bounds the chance of any false claim in the family: use it for headlines.
Benjamini-Hochberg bounds the share of false claims: use it for exploration.`,
		Example: `  fit stats adjust --p 0.004,0.03,0.02,0.5,0.011`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needFlags(cmd, "p"); err != nil {
				return err
			}
			holm, err := stats.Holm(ps)
			if err != nil {
				return refused(cmd, err)
			}
			bh, err := stats.BenjaminiHochberg(ps)
			if err != nil {
				return refused(cmd, err)
			}
			return emit(con, options, adjustResult{ps, holm, bh}, func(w io.Writer) {
				fmt.Fprintf(w, "%-10s  %-10s  %-10s\n", "p", "Holm", "BH")
				for i := range ps {
					fmt.Fprintf(w, "%-10.6f  %-10.6f  %-10.6f\n", ps[i], holm[i], bh[i])
				}
			})
		},
	}
	cmd.Flags().Float64SliceVar(&ps, "p", nil, "p-values of one family of tests")
	return cmd
}
