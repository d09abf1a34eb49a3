package statscli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/stats"
)

// judgeResult is the JSON of `fit stats judge`: short names, and the same numbers under the names
// reports use.
type judgeResult struct {
	Est    *float64 `json:"est"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	Raw    *float64 `json:"raw"`
	Status string   `json:"status"`
	Method string   `json:"method"`
	Level  float64  `json:"level"`

	ObservedRate  float64  `json:"observedRate"`
	CorrectedRate *float64 `json:"correctedRate"`
	TPR           *float64 `json:"tpr"`
	TNR           *float64 `json:"tnr"`
	// CI95Low and CI95High are at 95% whatever the level of Lo and Hi.
	CI95Low  *float64 `json:"ci95Low"`
	CI95High *float64 `json:"ci95High"`
	N        int      `json:"n"`
	NEff     float64  `json:"nEff"`
	M1       int      `json:"m1"`
	M0       int      `json:"m0"`
}

// judgeOptions are the counts of `fit stats judge`.
type judgeOptions struct {
	K, N        int
	Effective   float64
	Calibration stats.Calibration
}

func newJudge(con *console.Console, options *statsOptions) *cobra.Command {
	var counts judgeOptions
	cmd := &cobra.Command{
		Use:   "judge --k K --n N --tp TP --m1 M1 --tn TN --m0 M0",
		Short: "Correct a pass rate for the errors of the judge",
		Long: `Corrects a judge's pass rate for its errors (Rogan-Gladen) with an interval that
accounts for both the judged runs and the human labels being samples (Lang-Reiczigel).

The judge passed K of N runs. Of M1 runs that a human passed it passed TP; of M0
that a human failed it failed TN. status is "ok", "uncalibrated" without labels of
both kinds, or "judge-uninformative" when the labels do not show that the judge is
better than a coin flip; then there is no corrected rate.`,
		Example: `  fit stats judge --k 39 --n 60 --tp 36 --m1 40 --tn 34 --m0 40
  fit stats judge --k 21 --n 30 --n-eff 14.5 --tp 18 --m1 20 --tn 17 --m0 20 --format json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needFlags(cmd, "k", "n", "tp", "m1", "tn", "m0"); err != nil {
				return err
			}
			result, err := correct(counts, options.Level)
			if err != nil {
				return refused(cmd, err)
			}
			return emit(con, options, result, func(w io.Writer) { writeJudge(w, counts, result) })
		},
	}
	cmd.Flags().IntVar(&counts.K, "k", 0, "runs the judge passed")
	cmd.Flags().IntVar(&counts.N, "n", 0, "runs the judge saw")
	cmd.Flags().Float64Var(&counts.Effective, "n-eff", 0,
		"effective sample size, if tasks were repeated (default N)")
	cmd.Flags().IntVar(&counts.Calibration.TP, "tp", 0, "human passes the judge passed")
	cmd.Flags().IntVar(&counts.Calibration.M1, "m1", 0, "human passes in all")
	cmd.Flags().IntVar(&counts.Calibration.TN, "tn", 0, "human fails the judge failed")
	cmd.Flags().IntVar(&counts.Calibration.M0, "m0", 0, "human fails in all")
	return cmd
}

func correct(counts judgeOptions, level float64) (judgeResult, error) {
	correction, err := stats.CorrectRate(counts.K, counts.N, counts.Effective, counts.Calibration, level)
	if err != nil {
		return judgeResult{}, err
	}
	standard, err := stats.CorrectRate(counts.K, counts.N, counts.Effective, counts.Calibration, stats.DefaultLevel)
	if err != nil {
		return judgeResult{}, err
	}
	return judgeResult{
		Est:           correction.Est,
		Lo:            correction.Lo,
		Hi:            correction.Hi,
		Raw:           correction.Raw,
		Status:        correction.Status,
		Method:        correction.Method,
		Level:         level,
		ObservedRate:  correction.Observed,
		CorrectedRate: correction.Est,
		TPR:           correction.TPR,
		TNR:           correction.TNR,
		CI95Low:       standard.Lo,
		CI95High:      standard.Hi,
		N:             correction.N,
		NEff:          correction.NEff,
		M1:            correction.M1,
		M0:            correction.M0,
	}, nil
}

func writeJudge(w io.Writer, counts judgeOptions, result judgeResult) {
	fmt.Fprintf(w, "observed   %d of %d = %s\n", counts.K, counts.N, percent(result.ObservedRate))
	if result.TPR != nil {
		fmt.Fprintf(w, "judge      TPR %s, TNR %s\n", percent(*result.TPR), percent(*result.TNR))
	}
	switch result.Status {
	case stats.StatusOK:
		fmt.Fprintf(w, "corrected  %s, %s %s to %s (%s)\n", percent(*result.Est), levelName(result.Level),
			percent(*result.Lo), percent(*result.Hi), result.Method)
	case stats.StatusUninformative:
		fmt.Fprintln(w, "corrected  none: the labels do not show that the judge is better than a coin flip "+
			"(judge-uninformative)")
	default:
		fmt.Fprintln(w, "corrected  none: human labels of one kind are missing (uncalibrated)")
	}
}
