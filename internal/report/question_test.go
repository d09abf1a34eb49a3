package report

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/stats"
)

// unplannedQuestion shows that an analysis which was chosen after the plan is possible, marked in
// its first line and in JSON, and claims nothing that the planned one would not.
func unplannedQuestion(t *testing.T) {
	t.Helper()
	planned := planOf(12, 3)
	planned.Question = Question{Measure: MeasurePass, Alpha: 0.01, NonInferior: 0.05}
	built := build(t, Input{
		Records: append(armRuns("a", repeat("FFF", 12)...), armRuns("b", repeat("PPP", 12)...)...),
		Planned: planned,
		K:       []int{1},
	})
	for name, test := range map[string]struct {
		config CompareConfig
		mark   string
		claim  stats.Claim
		shown  bool // non-inferiority
	}{
		"as planned":           {CompareConfig{}, "", stats.Improved, true},
		"the planned words":    {CompareConfig{Alpha: 0.01, NonInferior: 0.05}, "", stats.Improved, true},
		"a higher alpha":       {CompareConfig{Alpha: 0.3}, "alpha 0.3 and not 0.01", stats.NotProven, false},
		"a lower alpha":        {CompareConfig{Alpha: 0.001}, "alpha 0.001 and not 0.01", stats.Improved, true},
		"a margin":             {CompareConfig{Margin: 0.9}, "the margin 0.9 and not none", stats.Improved, true},
		"another wider margin": {CompareConfig{NonInferior: 0.2}, "margin 0.2 and not 0.05", stats.Improved, false},
	} {
		c, err := Compare(&built.Groups[0], &built.Groups[1], test.config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		first, _, _ := strings.Cut(textOf(t, c), "\n")
		if c.Decision.Claim != test.claim || c.Decision.NonInferior.Shown != test.shown ||
			(test.mark != "") != strings.Contains(first, "not what was planned") ||
			!strings.Contains(first, test.mark) || (test.mark != "") != (len(c.NotPlanned) == 1) {
			t.Errorf("%s: %s, non-inferiority %+v, %q\n%s", name, c.Decision.Claim, c.Decision.NonInferior,
				c.NotPlanned, first)
		}
	}
	other := CompareConfig{Measure: MeasureScore}.asPlanned(&built.Groups[0], &built.Groups[1])
	if !other.withholds || len(other.NotPlanned) != 1 {
		t.Errorf("another measure: %+v", other)
	}
}

// A pair that somebody chose among those of the plan is corrected for all of them, and where only
// pairs with the baseline were planned, others claim nothing.
func TestAPairOfAPlanWithMoreArmsIsCorrectedForItsPairs(t *testing.T) {
	records := append(armRuns("a", repeat("PF", 12)...), armRuns("b", repeat("PP", 12)...)...)
	records = append(records, armRuns("c", repeat("FF", 12)...)...)
	for _, toBaseline := range []bool{false, true} {
		planned := planOf(12, 2)
		planned.Arms = []string{"a", "b", "c"}
		planned.Question = Question{Measure: MeasurePass, Alpha: 0.05, ToBaseline: toBaseline}
		built := build(t, Input{Records: records, Planned: planned, K: []int{1}})
		groups := map[string]*Group{}
		for i := range built.Groups {
			groups[built.Groups[i].Name] = &built.Groups[i]
		}
		pairs := 3.0
		if toBaseline {
			pairs = 2
		}
		c, err := Compare(groups["a"], groups["b"], CompareConfig{})
		if err != nil || c.Decision.PAdj != pairs*c.Decision.P ||
			!strings.Contains(c.Decision.Sentence, "comparisons of the plan") {
			t.Errorf("to the baseline %t: %v, p %g and %g: %s", toBaseline, err, c.Decision.P, c.Decision.PAdj,
				c.Decision.Sentence)
		}
		turned, err := Compare(groups["b"], groups["a"], CompareConfig{}) // as a head to head reads it
		if err != nil || turned.Decision.PAdj != c.Decision.PAdj || len(turned.Withheld) != len(c.Withheld) {
			t.Errorf("to the baseline %t, turned round: %v, %+v", toBaseline, err, turned.Withheld)
		}
		for _, asked := range []bool{false, true} {
			f, err := CompareArms([]*Group{groups["a"], groups["b"], groups["c"]}, asked, CompareConfig{})
			if err != nil || (len(f.NotPlanned) > 0) != (asked != toBaseline) {
				t.Errorf("to the baseline %t, asked %t: %v, %q", toBaseline, asked, err, f.NotPlanned)
			}
		}
		c, err = Compare(groups["b"], groups["c"], CompareConfig{})
		if err != nil || (c.Decision.Claim == stats.Regressed) == toBaseline {
			t.Errorf("to the baseline %t: %v, %s", toBaseline, err, c.Decision.Sentence)
		}
	}
}
