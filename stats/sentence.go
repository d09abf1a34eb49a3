package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// said is a sentence in its parts, for readers that set it in several lines.
type said struct {
	// Head is what is claimed, in a word or two: "Improved", "Not proven".
	Head string `json:"head"`
	// Text says what was found.
	Text string `json:"text"`
	// Evidence is what it rests on: the interval, p, tasks, runs, the method.
	Evidence []string `json:"evidence"`
	// Rest says what keeps it from being more, and what could have been found.
	Rest []string `json:"rest,omitempty"`
}

// sentence joins the parts.
func (s *said) sentence() string {
	text := fmt.Sprintf("%s: %s (%s)", s.Head, s.Text, strings.Join(s.Evidence, ", "))
	return strings.Join(append([]string{text}, s.Rest...), "; ") + "."
}

// say puts a decision into plain English.
func say(decision Decision, comparison Comparison, config DecideConfig) said {
	words := newWording(comparison, config.Measure)
	s := said{Evidence: words.evidence(decision, comparison)}
	var parts []string
	of := ""
	if comparison.Unpaired > 0 {
		of = fmt.Sprintf(" on the %s with runs of both", count(comparison.Tasks, "task"))
	}
	observedText := fmt.Sprintf("the observed difference in %s%s is %s", words.name, of, words.signed(comparison.Est))
	switch decision.Claim {
	case Improved, Regressed:
		s.Head, parts = capital(string(decision.Claim)), []string{words.change(comparison.Est)}
	case Equivalent:
		s.Head, parts = "Equivalent", []string{fmt.Sprintf("the difference in %s between %s and %s is less than %s",
			words.name, words.candidate, words.baseline, words.size(config.Margin))}
	case Insufficient:
		s.Head = cmp.Or(observed(config.Observed), "Insufficient data, no statistical claim")
		why := strings.Join(insufficiency(comparison, words), " and ")
		parts = append(slices.Clone(config.Withheld), why, observedText)
	default:
		s.Head = cmp.Or(observed(config.Observed), "Not proven")
		parts = append(slices.Clone(config.Withheld), observedText)
		if obstacles := decision.Obstacles[len(config.Withheld):]; len(obstacles) > 0 {
			s.Rest = append(s.Rest, strings.Join(obstacles, ", "))
		}
		s.Rest = append(s.Rest, "the minimum detectable difference is "+words.size(comparison.MDE))
	}
	if config.Remark != "" {
		parts = append(parts, config.Remark)
	}
	s.Text = strings.Join(parts, "; ")
	return s
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
		reasons = append(reasons, "the experiment is too small to detect any difference at 80% power")
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

func (w wording) evidence(decision Decision, comparison Comparison) []string {
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
	return append(parts, decision.MethodText())
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
