package experiment

import (
	"cmp"
	"fmt"

	"github.com/fit-eval/fit/stats"
)

// Question is what an experiment is to answer, decided before its first run. Zero fields are the
// defaults, which is what plans without a question planned.
type Question struct {
	Measure string  `json:"measure"` // pass or score
	Alpha   float64 `json:"alpha"`
	// Margin is the largest difference that does not matter; 0 asks for no equivalence.
	Margin float64 `json:"margin,omitempty"`
	// NonInferior is the margin of the gate for non-inferiority; 0 is no gate.
	NonInferior float64 `json:"nonInferior,omitempty"`
	// Effect is the difference that the experiment is to detect; 0 is none that was named.
	Effect float64 `json:"effect,omitempty"`
	// Pairs are all, or baseline for those with the first arm.
	Pairs string `json:"pairs"`
	// Control is how the family says that the arm with a known effect differs from the baseline:
	// better or worse; empty without such an arm.
	Control string `json:"control,omitempty"`
}

// The ways to compare more than two arms.
const (
	PairsAll      = "all"
	PairsBaseline = "baseline"
)

// Asked returns the question of the plan, with the defaults filled in.
func (p *Plan) Asked() Question {
	q := Question{}
	if p.Question != nil {
		q = *p.Question
	}
	q.Measure, q.Pairs = cmp.Or(q.Measure, "pass"), cmp.Or(q.Pairs, PairsAll)
	q.Alpha = cmp.Or(q.Alpha, stats.DefaultAlpha)
	return q
}

// String describes the question in a few words.
func (q Question) String() string {
	text := fmt.Sprintf("%s at α %g, %s pairs", q.Measure, q.Alpha, q.Pairs)
	for _, more := range []struct {
		name  string
		value float64
	}{{"margin", q.Margin}, {"non-inferior", q.NonInferior}, {"effect", q.Effect}} {
		if more.value > 0 {
			text += fmt.Sprintf(", %s %g", more.name, more.value)
		}
	}
	if q.Control != "" {
		text += ", a control that is " + q.Control
	}
	return text
}
