package versuscli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/versus"
)

func newCalibrationExport(d *reader) *cobra.Command {
	return &cobra.Command{
		Use:     "export DIR",
		Short:   "Print what the labels say about the panel, for import into another run directory",
		Example: "  fit versus calibrate export eval/run-001 > calibration.json",
		Args:    cobra.ExactArgs(1),
		RunE: d.judged(nil, func(_ context.Context, judgement *versus.Judgement) error {
			carried, err := judgement.Labels.Carry(judgement.Result, judgement.Subjects)
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			return jsonenc.WriteIndented(d.con.Stdout, carried)
		}),
	}
}

// maxCarried bounds a file that carries a calibration.
const maxCarried = 1 << 20

func newCalibrationImport(d *reader) *cobra.Command {
	return &cobra.Command{
		Use:   "import DIR FILE",
		Short: "Use what labels in another run directory say about the same panel, prompt and tasks",
		Long: `Use what labels in another run directory say about the panel. It is rejected where prompt, panel or
tasks differ, or where the test split was measured already. Rates are corrected by it; a claim also
needs labels of both arms, and arms that differ from the labelled ones have none.`,
		Example: "  fit versus calibrate import eval/run-002 calibration.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			carried, err := readCarried(args[1])
			if err != nil {
				return console.Exit(console.ExitUsage, fmt.Errorf("%s: %w", args[1], err))
			}
			return d.judged(nil, func(_ context.Context, judgement *versus.Judgement) error {
				if err := judgement.Labels.Accept(carried, judgement.Result, judgement.Subjects,
					time.Now().UnixMilli()); err != nil {
					return console.Exit(console.ExitUsage, fmt.Errorf("%s: %w", args[1], err))
				}
				_, err := fmt.Fprintf(d.con.Stdout, "%s used in %s\n",
					report.Count(len(carried.Measurements), "calibration"), args[0])
				return err
			})(command, args)
		},
	}
}

func readCarried(path string) (*judge.Carried, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCarried+1))
	if err == nil && len(data) > maxCarried {
		err = fmt.Errorf("larger than %d bytes, which no calibration is", maxCarried)
	}
	if err != nil {
		return nil, err
	}
	return judge.ReadCarried(data)
}
