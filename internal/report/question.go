package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/stats"
)

// Question is what an experiment was planned to answer, with its arms. Without an alpha nobody
// knows it, and any question is as good as another.
type Question struct {
	Measure                    string
	Alpha, Margin, NonInferior float64
	ToBaseline                 bool // only pairs with the first arm
	Arms                       []string
}

// ToBaseline reports whether the plan compares all arms with the first only.
func (g *Group) ToBaseline() bool { return g.question.ToBaseline }

// pairs counts the comparisons that were planned.
func (q Question) pairs() int {
	if n := len(q.Arms); !q.ToBaseline {
		return n * (n - 1) / 2
	}
	return len(q.Arms) - 1
}

// asPlanned fills in what was planned where nothing else is asked for, and says what is asked for
// that was not planned. Another measure, pair or higher alpha may claim what the plan would not,
// and claims nothing; another margin claims neither equivalence nor non-inferiority.
func (cfg CompareConfig) asPlanned(groups ...*Group) CompareConfig {
	q := Question{}
	if len(groups) > 0 {
		q = groups[0].question
	}
	if q.Alpha == 0 {
		if slices.ContainsFunc(groups, func(g *Group) bool { return g.fractional }) {
			cfg.Measure = cmp.Or(cfg.Measure, MeasureScore)
		}
		cfg.Measure, cfg.Alpha = cmp.Or(cfg.Measure, MeasurePass), cmp.Or(cfg.Alpha, stats.DefaultAlpha)
		return cfg
	}
	note := func(withholds bool, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if slices.Contains(cfg.NotPlanned, text) {
			return
		}
		cfg.NotPlanned = append(cfg.NotPlanned, text)
		cfg.withholds = cfg.withholds || withholds
	}
	if cfg.Measure = cmp.Or(cfg.Measure, q.Measure); cfg.Measure != q.Measure {
		note(true, "the measure %s and not %s", cfg.Measure, q.Measure)
	}
	if cfg.Alpha = cmp.Or(cfg.Alpha, q.Alpha); cfg.Alpha != q.Alpha {
		note(cfg.Alpha > q.Alpha, "alpha %g and not %g", cfg.Alpha, q.Alpha)
	}
	if cfg.Margin != 0 && cfg.Margin != q.Margin {
		note(false, "the margin %g and not %s", cfg.Margin, amountOrNone(q.Margin))
	}
	cfg.Margin = q.Margin
	if cfg.NonInferior = cmp.Or(cfg.NonInferior, q.NonInferior); cfg.NonInferior != q.NonInferior {
		cfg.otherMargin = true
		note(false, "the non-inferiority margin %g and not %s", cfg.NonInferior, amountOrNone(q.NonInferior))
	}
	if q.ToBaseline && len(groups) == 2 && len(q.Arms) > 2 && oneExperiment(groups[0], groups[1]) &&
		groups[0].Provenance.Arm != q.Arms[0] && groups[1].Provenance.Arm != q.Arms[0] {
		note(true, "a pair without the baseline %s", q.Arms[0])
	}
	return cfg
}

func amountOrNone(amount float64) string {
	if amount == 0 {
		return "none"
	}
	return fmt.Sprintf("%g", amount)
}

// refuse says of non-inferiority with a margin that was not planned that it is not shown.
func refuse(answer *stats.NonInferiority) {
	if answer != nil {
		answer.Shown, answer.Against = false, append(answer.Against, "its margin was not planned")
	}
}

// unplannedPairs returns how many times more comparisons were planned than are made, by which their
// p-values are corrected: somebody has chosen these among them. Nobody knows what was planned with
// results of another harness: one pair of them is chosen among those of their arms.
func unplannedPairs(made int, groups ...*Group) int {
	first, q := groups[0], groups[0].question
	if made < 1 || len(q.Arms) < 3 || slices.ContainsFunc(groups[1:], func(g *Group) bool {
		chosen := made == 1 && first.Imported != "" && g.Imported != "" && g.Directory == first.Directory
		return !chosen && !oneExperiment(first, g)
	}) {
		return 1
	}
	return max(1, (q.pairs()+made-1)/made)
}

// notPlannedText marks an answer to another question than the planned one; empty if there is none.
func notPlannedText(what []string) string {
	if len(what) == 0 {
		return ""
	}
	return "not what was planned: " + strings.Join(what, ", ")
}

// notPlanned withholds claims of an analysis that was chosen after the plan.
func notPlanned(basis *Basis) []string {
	if len(basis.NotPlanned) == 0 {
		return nil
	}
	return []string{notPlannedText(basis.NotPlanned)}
}
