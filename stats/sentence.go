package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sentence puts a decision into plain English.
func sentence(decision Decision, comparison Comparison, config DecideConfig) string {
	words := newWording(comparison, config.Measure)
	evidence, remark := words.evidence(decision, comparison), ""
	if config.Remark != "" {
		remark = "; " + config.Remark
	}
	switch decision.Claim {
	case Improved, Regressed:
		return fmt.Sprintf("%s: %s%s (%s).", capital(string(decision.Claim)), words.change(comparison.Est), remark,
			evidence)
	case Equivalent:
		return fmt.Sprintf("Equivalent: the difference in %s between %s and %s is less than %s%s (%s).",
			words.name, words.candidate, words.baseline, words.size(config.Margin), remark, evidence)
	case Insufficient:
		head := cmp.Or(observed(config.Observed), "Insufficient data, no statistical claim")
		reasons := append(slices.Clone(config.Withheld), strings.Join(insufficiency(comparison, words), " and "))
		return fmt.Sprintf("%s: %s; the observed difference in %s is %s%s (%s).", head,
			strings.Join(reasons, "; "), words.name, words.signed(comparison.Est), remark, evidence)
	}
	parts := append(slices.Clone(config.Withheld), fmt.Sprintf("the observed difference in %s is %s%s (%s)",
		words.name, words.signed(comparison.Est), remark, evidence))
	if obstacles := decision.Obstacles[len(config.Withheld):]; len(obstacles) > 0 {
		parts = append(parts, strings.Join(obstacles, ", "))
	}
	return fmt.Sprintf("%s: %s; the minimum detectable difference is %s.",
		cmp.Or(observed(config.Observed), "Not proven"), strings.Join(parts, "; "), words.size(comparison.MDE))
}

// observed heads the sentence about numbers that are no experiment; empty where they are one.
func observed(what string) string {
	if what == "" {
		return ""
	}
	return "Observed (" + what + ")"
}

func insufficiency(comparison Comparison, words wording) []string {
	var reasons []string
	if comparison.Tasks < MinClaimTasks {
		reasons = append(reasons, fmt.Sprintf("%s where at least %d are needed", count(comparison.Tasks, "task"),
			MinClaimTasks))
	}
	switch {
	case comparison.Interval == nil:
		reasons = append(reasons, "the differences have zero variance, so no confidence interval can be computed")
	case comparison.MDE >= undetectable && words.kind == Rate:
		reasons = append(reasons, "no difference is detectable at 80% power")
	case comparison.MDE > MaxUsefulMDE:
		reasons = append(reasons, "the minimum detectable difference is "+words.size(comparison.MDE))
	}
	return reasons
}

// wording renders differences in the unit of the measure.
type wording struct {
	name, candidate, baseline string
	kind                      Kind
}

func newWording(comparison Comparison, measure Measure) wording {
	kind := cmp.Or(measure.Kind, Rate)
	if comparison.Ratio {
		kind = Ratio
	}
	return wording{
		name:      cmp.Or(measure.Name, map[Kind]string{Rate: "pass rate", Score: "score", Ratio: "cost"}[kind]),
		candidate: cmp.Or(measure.Candidate, "the candidate"),
		baseline:  cmp.Or(measure.Baseline, "the baseline"),
		kind:      kind,
	}
}

// change phrases a difference as a comparison of the two arms.
func (w wording) change(effect float64) string {
	direction := "higher"
	if effect < 0 {
		direction = "lower"
	}
	size := w.size(effect)
	if w.kind == Ratio { // a fifth less, not a quarter more
		size = formatPercent(math.Abs(math.Exp(effect) - 1))
	}
	return fmt.Sprintf("%s of %s is %s %s than %s", w.name, w.candidate, size, direction, w.baseline)
}

// size returns how large a difference is, without its sign.
func (w wording) size(effect float64) string {
	effect = math.Abs(effect)
	switch w.kind {
	case Rate:
		return fmt.Sprintf("%.1f percentage points", 100*effect)
	case Ratio:
		return formatPercent(math.Exp(effect) - 1)
	}
	return strconv.FormatFloat(effect, 'g', 4, 64)
}

func (w wording) signed(effect float64) string {
	switch w.kind {
	case Rate:
		return fmt.Sprintf("%+.1f percentage points", 100*effect)
	case Ratio:
		return fmt.Sprintf("%+.1f%%", 100*(math.Exp(effect)-1))
	}
	return fmt.Sprintf("%+.4g", effect)
}

// span renders an interval, with its unit once.
func (w wording) span(lo, hi float64) string {
	if w.kind == Rate {
		return fmt.Sprintf("%+.1f to %+.1f points", 100*lo, 100*hi)
	}
	return w.signed(lo) + " to " + w.signed(hi)
}

func (w wording) evidence(decision Decision, comparison Comparison) string {
	parts := []string{}
	if decision.Lo != nil {
		parts = append(parts, fmt.Sprintf("%g%% CI %s", math.Round(100*decision.Level*1e6)/1e6,
			w.span(*decision.Lo, *decision.Hi)))
	}
	if decision.EValue != nil {
		parts = append(parts, fmt.Sprintf("e = %.3g", *decision.EValue))
	}
	parts = append(parts, labelP(decision.P, decision.PAdj)+" "+formatP(decision.PAdj), comparison.units(),
		count(comparison.Runs, "run"))
	if excluded := decision.Excluded.Candidate.Excluded + decision.Excluded.Baseline.Excluded; excluded > 0 {
		parts = append(parts, fmt.Sprintf("%d excluded", excluded))
	}
	return strings.Join(append(parts, decision.MethodText()), ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func formatPercent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// labelP says "adjusted" only where something was adjusted.
func labelP(p, adjusted float64) string {
	if adjusted != p {
		return "adjusted p"
	}
	return "p"
}

func formatP(p float64) string {
	switch {
	case p < 0.0001:
		return "< 0.0001"
	case p < 0.01:
		return "= " + strconv.FormatFloat(p, 'f', 4, 64)
	}
	return "= " + strconv.FormatFloat(p, 'f', 3, 64)
}

// Text says whether non-inferiority is shown, in percentage points.
func (n *NonInferiority) Text() string {
	shown, limit := "not shown", "no confidence interval can be computed"
	if n.Shown {
		shown = "shown"
	}
	if n.Limit != nil {
		limit = fmt.Sprintf("the difference may be %+.1f points", 100**n.Limit)
	}
	return fmt.Sprintf("non-inferiority with a margin of %.1f points: %s (%s)", 100*n.Margin, shown,
		strings.Join(append([]string{limit}, n.Against...), "; "))
}

// units says how many tasks there are, and in how many clusters if they are fewer.
func (c Comparison) units() string {
	if c.Clusters < c.Tasks {
		return count(c.Tasks, "task") + " in " + count(c.Clusters, "cluster")
	}
	return count(c.Tasks, "task")
}
