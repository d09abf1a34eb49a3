package versuscli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/versus"
)

func newCalibrate(con *console.Console, registry *agent.Registry) *cobra.Command {
	d := &reader{con: con, registry: registry}
	command := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure the judges against human labels, so that their rates can be corrected",
		Long: `Measure the judges against human labels, so that their rates can be corrected.

  1. "label" shows runs without saying who did the work or what the judges say, and keeps your
     verdicts in labels.yaml of the run directory.
  2. "split" divides the labels: train for examples in prompts, dev for choosing members, test
     for measuring once.
  3. "measure" compares the panel with the labels. The test split is sealed: a second look needs
     --again, and then the split no longer corrects anything.
  4. "status" shows the labels and measurements so far.

"export" and "import" carry a measurement to another run directory in which the same panel, with the
same prompt, judged the same tasks.`,
		Example: `  fit versus calibrate label eval/run-001 --dim correctness
  fit versus calibrate split eval/run-001
  fit versus calibrate measure eval/run-001 --dim correctness`,
	}
	command.AddCommand(newLabel(d), newSplit(d), newMeasure(d), newCalibrationStatus(d), newCalibrationExport(d),
		newCalibrationImport(d))
	return command
}

// judged runs a command on a directory that judges were asked about. A dimension that the command
// has must be given.
func (d *reader) judged(dimension *console.Choice, run func(context.Context, *versus.Judgement) error,
) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		if dimension != nil && dimension.Value == "" {
			return console.Usagef("--dim is required: one of %s", strings.Join(dimension.Choices, ", "))
		}
		dir := args[0]
		source, err := d.open(command.Context(), dir, versus.Options{})
		if err != nil {
			return err
		}
		judgement, err := source.Judgement()
		if err != nil {
			return experimentcli.Unusable(err)
		}
		if judgement == nil {
			return console.Usagef("nobody has judged %s yet: fit versus judge %s --panel panel.yaml", dir, dir)
		}
		return run(command.Context(), judgement)
	}
}

// dimensionFlag is a flag for one dimension.
func dimensionFlag() console.Choice { return console.Choice{Choices: evidence.Dimensions()} }

const seedUsage = "seed of the order"

func newLabel(d *reader) *cobra.Command {
	dimension := dimensionFlag()
	var seed uint64
	var limit console.Count
	command := &cobra.Command{
		Use:   "label DIR",
		Short: "Show runs one by one, blind, and keep your verdicts",
		Long: `Show runs one by one, without saying who did the work or what the judges say, and keep your verdicts.
The answer is read from standard input, one line each: p (pass), f (fail), s (skip), q (quit).`,
		Example: "  fit versus calibrate label eval/run-001 --dim correctness",
		Args:    cobra.ExactArgs(1),
		RunE: d.judged(&dimension, func(ctx context.Context, judgement *versus.Judgement) error {
			l := &labelling{
				con:       d.con,
				judgement: judgement,
				dimension: dimension.Value,
				seed:      seed,
				limit:     limit.Value,
				answers:   bufio.NewScanner(d.con.Stdin),
			}
			return l.run(ctx)
		}),
	}
	command.Flags().Var(&dimension, "dim", "dimension to label")
	command.Flags().Uint64Var(&seed, "seed", 1, seedUsage)
	limit.Min = 1
	command.Flags().Var(&limit, "count", "stop after this many labels")
	return command
}

// labelling is one sitting of a person who labels runs.
type labelling struct {
	con       *console.Console
	judgement *versus.Judgement
	dimension string
	seed      uint64
	limit     int
	answers   *bufio.Scanner
}

func (l *labelling) run(ctx context.Context) error {
	labelled := 0
	for _, subject := range l.inOrder() {
		// asked about one run at a time, it says whether that one has a label yet
		item, unlabelled := l.judgement.Labels.Next([]judge.Subject{subject}, l.judgement.Settings, l.dimension, l.seed)
		if !unlabelled {
			continue
		}
		if l.limit > 0 && labelled == l.limit {
			break
		}
		answer, err := l.ask(item)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if answer == console.VerdictQuit {
			break
		}
		if answer == console.VerdictSkip {
			continue
		}
		if err := l.judgement.Labels.Add(item, answer == console.VerdictPass); err != nil {
			return console.Exit(console.ExitIncomplete, err)
		}
		labelled++
	}
	pass, fail := l.judgement.Labels.Count(l.dimension)
	_, err := fmt.Fprintf(l.con.Stdout, "%s; %s has %d pass and %d fail\n", report.Count(labelled, "new label"),
		l.dimension, pass, fail)
	return err
}

// inOrder shuffles the runs, so that neither task nor arm can be told from the place of a run.
func (l *labelling) inOrder() []judge.Subject {
	shuffled := slices.Clone(l.judgement.Subjects)
	rand.New(rand.NewPCG(l.seed, 0)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	return shuffled
}

// ask shows a run and reads the answer.
func (l *labelling) ask(item judge.Item) (string, error) {
	fmt.Fprintf(l.con.Stdout, "%s\n%s\n", display.Text(item.Evidence), display.Text(item.Question))
	return l.con.AskVerdict(l.answers, l.dimension)
}

func newSplit(d *reader) *cobra.Command {
	var seed uint64
	command := &cobra.Command{
		Use:     "split DIR",
		Short:   "Split the labels into train, dev and test, keeping clusters together",
		Example: "  fit versus calibrate split eval/run-001",
		Args:    cobra.ExactArgs(1),
		RunE: d.judged(nil, func(_ context.Context, judgement *versus.Judgement) error {
			changed, err := judgement.Labels.Split(judgement.Subjects, seed)
			if err != nil {
				return console.Exit(console.ExitIncomplete, err)
			}
			_, err = fmt.Fprintf(d.con.Stdout, "%s got a split\n", report.Count(changed, "label"))
			return err
		}),
	}
	command.Flags().Uint64Var(&seed, "seed", 1, seedUsage)
	return command
}

func newMeasure(d *reader) *cobra.Command {
	dimension := dimensionFlag()
	split := console.Choice{Value: judge.SplitTest, Choices: []string{judge.SplitDev, judge.SplitTest}}
	var again bool
	var format console.Format
	command := &cobra.Command{
		Use:   "measure DIR",
		Short: "Compare the panel with the labels of a split; the test split is sealed",
		Example: `  fit versus calibrate measure eval/run-001 --dim correctness --split dev
  fit versus calibrate measure eval/run-001 --dim correctness`,
		Args: cobra.ExactArgs(1),
		RunE: d.judged(&dimension, func(_ context.Context, judgement *versus.Judgement) error {
			m, err := judgement.Labels.Measure(judgement.Result, dimension.Value, split.Value, again,
				time.Now().UnixMilli())
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			if format.JSON() {
				return jsonenc.WriteIndented(d.con.Stdout, m)
			}
			return printMeasurement(d.con.Stdout, &m)
		}),
	}
	command.Flags().Var(&dimension, "dim", "dimension to measure")
	command.Flags().Var(&split, "split", "labels to measure with")
	command.Flags().BoolVar(&again, "again", false,
		"use the test split a second time; the calibration then no longer corrects anything")
	format.Register(command.Flags(), "output format")
	format.RegisterRobot(command.Flags())
	return command
}

func printMeasurement(w io.Writer, m *judge.Measurement) error {
	pooled := m.Pooled()
	fmt.Fprintf(w, "%s, split %s, calibration %s: the panel passes %d of %d good runs and fails %d of %d bad ones\n",
		m.Dimension, m.Split, m.ID, pooled.TP, pooled.M1, pooled.TN, pooled.M0)
	for _, arm := range m.PerArm {
		fmt.Fprintf(w, "  %s: %d of %d, %d of %d\n", display.Line(arm.Agent), arm.TP, arm.M1, arm.TN, arm.M0)
	}
	if kappa, ac1, err := m.Agreement(); err == nil {
		fmt.Fprintf(w, "agreement beyond chance: kappa %.2f, AC1 %.2f\n", kappa.Value, ac1.Value)
	}
	if m.Unjudged > 0 {
		fmt.Fprintf(w, "%s left out: the panel has no verdict on the run\n", report.Count(m.Unjudged, "label"))
	}
	if m.Again {
		fmt.Fprintln(w, "this was a second use of the test split: this calibration no longer corrects anything")
	}
	return nil
}

func newCalibrationStatus(d *reader) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:     "status DIR",
		Short:   "Show for each dimension how many labels there are and what they say about the panel",
		Example: "  fit versus calibrate status eval/run-001",
		Args:    cobra.ExactArgs(1),
		RunE: d.judged(nil, func(_ context.Context, judgement *versus.Judgement) error {
			if format.JSON() {
				return jsonenc.WriteIndented(d.con.Stdout, map[string]any{
					"calibration": judgement.Calibrations,
					"choices":     judgement.Choices,
				})
			}
			return printStatus(d.con.Stdout, judgement)
		}),
	}
	format.Register(command.Flags(), "output format")
	format.RegisterRobot(command.Flags())
	return command
}

func printStatus(w io.Writer, judgement *versus.Judgement) error {
	for i := range judgement.Calibrations {
		c := &judgement.Calibrations[i]
		pass, fail := judgement.Labels.Count(c.Dimension)
		line := fmt.Sprintf("%-13s %d pass, %d fail · %s", c.Dimension, pass, fail, c.Status)
		if c.Reason != "" {
			line += ": " + c.Reason
		}
		if c.TPR != nil && c.TNR != nil {
			line += fmt.Sprintf(" · TPR %.2f of %d, TNR %.2f of %d", *c.TPR, c.M1, *c.TNR, c.M0)
		}
		if c.Carried {
			line += " · measured in another run directory"
		}
		if c.Homogeneity != nil && c.Homogeneity.PerAgent {
			line += " · " + c.Homogeneity.Reason
		}
		if _, err := fmt.Fprintln(w, display.Line(line)); err != nil {
			return err
		}
	}
	return nil
}
