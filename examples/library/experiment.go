package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fit-eval/fit"
)

// measure asks whether one more sentence makes an agent better, and reads what it left.
func measure(ctx context.Context, model string, args []string) error {
	family, output := args[0], args[1]
	before := fit.Arm{
		Name:     "before",
		Agent:    "builtin",
		Model:    "scripted",
		ModelURL: model,
	}
	after := before
	after.Name, after.Prompt = "after", "Look at the sign."
	result, err := fit.Experiment(ctx, fit.ExperimentConfig{
		Family: family,
		Tasks:  []string{"add"},
		Arms:   []fit.Arm{before, after},
		Runs:   2,
		Output: output,
	})
	if err != nil {
		return err
	}
	fmt.Println(result.Status)
	if err := result.Comparison.Text(os.Stdout); err != nil {
		return err
	}
	again, err := fit.Compare(output+":before", output+":after")
	if err != nil {
		return err
	}
	fmt.Println("the files alone say the same:", again.Decision.Sentence == result.Comparison.Decision.Sentence)
	return inspect(ctx, output)
}

// inspect reads the evidence of every run, the judges' verdicts where there are any, and the
// comparison of every pair.
func inspect(ctx context.Context, output string) error {
	report, err := fit.ReadReport(ctx, output)
	if err != nil {
		return err
	}
	for _, cell := range report.Cells {
		show(cell.Task+" by "+cell.Arm, cell.Rubric, cell.Errors)
	}
	return nil
}

func show(run string, rubric fit.QualityRubric, errors []fit.ErrorAttribution) {
	fmt.Printf("%s: correct %t, %d causes of failure\n", run, rubric.Correctness != nil && *rubric.Correctness == 1,
		len(errors))
}
