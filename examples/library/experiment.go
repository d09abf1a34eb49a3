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
	return inspect(ctx, model, args[1:])
}

// inspect reads the evidence of every run, the judges' verdicts where there are any, and the
// comparison of every pair.
func inspect(ctx context.Context, _ string, args []string) error {
	report, err := fit.ReadReport(ctx, args[0])
	if err != nil {
		return err
	}
	for _, cell := range report.Cells {
		show(cell.Task+" by "+cell.Arm, cell.Rubric, cell.Errors)
		for _, panel := range cell.Verdicts {
			showVotes(panel.Votes)
		}
	}
	for _, pair := range report.Pairs {
		showPreferred(pair.Pairwise)
	}
	for _, agent := range report.PerAgent {
		showRates(agent.Corrected)
	}
	return nil
}

func show(run string, rubric fit.QualityRubric, errors []fit.ErrorAttribution) {
	fmt.Printf("%s: correct %t, %d causes of failure\n", run, rubric.Correctness != nil && *rubric.Correctness == 1,
		len(errors))
}

// showVotes prints what each member of a panel says about one run.
func showVotes(votes []fit.JudgeVerdict) {
	for _, vote := range votes {
		if vote.Result != nil {
			fmt.Printf("  %s: %s by %s (citations: %d)\n", vote.Dimension, *vote.Result, vote.Member,
				len(vote.Evidence))
		}
	}
}

// showPreferred prints which of two runs the panel prefers, asked in both orders.
func showPreferred(verdicts []fit.PairwiseVerdict) {
	for _, verdict := range verdicts {
		fmt.Printf("%s: %s of %s and %s, order mattered: %t\n", verdict.Task, verdict.Winner, verdict.AgentA,
			verdict.AgentB, verdict.BiasDetected)
	}
}

// showRates prints what the panel's rates are worth: without labels of people they are uncorrected.
func showRates(rates []fit.BiasCorrection) {
	for _, rate := range rates {
		fmt.Printf("%s of %s: %.0f%% of %d runs as judged, %s\n", rate.Dimension, rate.Agent, 100*rate.ObservedRate,
			rate.N, rate.Status)
	}
}
