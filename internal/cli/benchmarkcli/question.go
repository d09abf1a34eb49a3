package benchmarkcli

import (
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report"
)

// questionFlags say what an experiment is to answer. They are kept in its plan: compare answers
// that, and marks anything else.
type questionFlags struct {
	measure, pairs              console.Choice
	margin, nonInferior, effect float64
	control                     string // what the family declares of its control
}

func (q *questionFlags) register(flags *pflag.FlagSet) {
	q.measure, q.pairs = measureChoice(), pairsChoice()
	flags.Var(&q.measure, "measure", "planned: the measure that decides, pass rate or score")
	flags.Var(&q.pairs, "pairs", "planned, with more than two arms: compare all pairs, or all arms with the first")
	flags.Float64Var(&q.margin, "margin", 0, "planned: equivalence margin, the largest difference that does not matter")
	flags.Float64Var(&q.nonInferior, "non-inferior", 0,
		"planned: non-inferiority margin, for compare to show that an arm is at most this much worse")
	flags.Float64Var(&q.effect, "effect", 0, "planned: the difference in pass rate to detect, for the record")
}

// question returns what is planned.
func (q *questionFlags) question(alpha float64) (experiment.Question, error) {
	for name, amount := range map[string]float64{
		"margin": q.margin, "non-inferior": q.nonInferior, "effect": q.effect,
	} {
		if !(amount >= 0 && amount < 1) {
			return experiment.Question{}, console.Usagef(
				"--%s %g: must be a fraction of at least 0 and below 1: 0.1 is 10 percentage points", name, amount)
		}
	}
	return experiment.Question{
		Measure:     q.measure.Value,
		Alpha:       alpha,
		Margin:      q.margin,
		NonInferior: q.nonInferior,
		Effect:      q.effect,
		Pairs:       q.pairs.Value,
		Control:     q.control,
	}, nil
}

// measureChoice is the flag that says what decides.
func measureChoice() console.Choice {
	return console.Choice{Value: report.MeasurePass, Choices: []string{report.MeasurePass, report.MeasureScore}}
}

// pairsChoice is the flag that says which arms are compared.
func pairsChoice() console.Choice {
	return console.Choice{
		Value:   experiment.PairsAll,
		Choices: []string{experiment.PairsAll, experiment.PairsBaseline},
	}
}
