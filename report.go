package fit

import (
	"context"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report/versus"
)

// What a report of agents head to head is made of.
type (
	// EvalReport is the report of a run directory: every run with its evidence, every agent with
	// its rates, and what the difference of each pair of agents proves.
	EvalReport = versus.EvalReport
	// QualityRubric is what code alone says about the work of one run.
	QualityRubric = evidence.QualityRubric
	// ErrorAttribution says why a run failed, with the place that shows it.
	ErrorAttribution = evidence.ErrorAttribution
	// JudgeVerdict is what a panel of models says about one run, with its citations.
	JudgeVerdict = judge.JudgeVerdict
	// PairwiseVerdict is which of two runs a panel prefers.
	PairwiseVerdict = judge.PairwiseVerdict
	// BiasCorrection is a rate of a panel, corrected by the labels of people.
	BiasCorrection = judge.BiasCorrection
)

// ReadReport builds the report of a run directory from its files. No agent and no model is asked.
func ReadReport(ctx context.Context, dir string) (*EvalReport, error) {
	w := Wiring{}.filled()
	source, err := versus.Open(ctx, dir, versus.Options{Dialects: w.Registry.Dialects(), Prices: w.Prices})
	if err != nil {
		return nil, err
	}
	return source.Report()
}
