package report

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

func familyOf(t *testing.T, toBaseline bool, arms map[string]string) *MultiComparison {
	t.Helper()
	var records []ledger.Record
	for arm, word := range arms {
		records = append(records, armRuns(arm, repeat(word, 14)...)...)
	}
	built := build(t, Input{Records: records, K: []int{1}})
	var groups []*Group
	for i := range built.Groups {
		groups = append(groups, &built.Groups[i])
	}
	f, err := CompareArms(groups, toBaseline, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSeveralArmsGetOneCorrectedTableAndARanking(t *testing.T) {
	f := familyOf(t, false, map[string]string{"low": "FFFF", "good": "PPPF", "best": "PPPP", "good2": "PPPF"})
	if len(f.Pairs) != 6 || f.Arms[0].Name != "best" || f.Arms[3].Name != "low" {
		t.Fatalf("%+v", f)
	}
	for _, pair := range f.Pairs {
		if pair.Decision.PAdj <= pair.Decision.P && pair.Decision.P < 1 {
			t.Errorf("%s against %s is not corrected: %+v", pair.B, pair.A, pair.Decision)
		}
	}
	want := [][]string{{"best"}, {"good", "good2"}, {"low"}}
	if !slices.EqualFunc(f.Sets, want, slices.Equal) {
		t.Errorf("sets %v, want %v", f.Sets, want)
	}
	var text, page bytes.Buffer
	if err := f.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := f.Markdown(&page); err != nil {
		t.Fatal(err)
	}
	wantIn(t, text.String(), "good2 against good", "rank 2: good, good2 (no significant difference)", "6 comparisons")
	wantIn(t, page.String(), "| low against good |", "rank 3: low (stands alone)")
}

func TestArmsCanBeComparedWithTheFirstAlone(t *testing.T) {
	f := familyOf(t, true, map[string]string{"a": "FFFF", "b": "PPPF", "c": "FFFF"})
	if f.Baseline != "a" || len(f.Pairs) != 2 || f.Sets != nil || f.Pairs[0].Decision.Claim != stats.Improved {
		t.Errorf("%+v", f)
	}
}

// Results of several experiments are headed as what they are, and nobody is ranked by them.
func TestArmsOfSeveralExperimentsAreObserved(t *testing.T) {
	var groups []*Group
	for _, name := range []string{"a", "b", "c"} {
		g := build(t, Input{Records: armRuns(name, repeat("PPF", 12)...), K: []int{1}}).Groups[0]
		g.Provenance.Experiment = "experiment of " + name
		groups = append(groups, &g)
	}
	f, err := CompareArms(groups, false, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var text, page bytes.Buffer
	if err := errors.Join(f.Text(&text), f.Markdown(&page)); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(text.String(), "\n")
	wantIn(t, head, "Observed (not one experiment); claims are withheld about 3 of 3 comparisons")
	wantIn(t, page.String(), "**Observed (not one experiment); ")
	if len(f.Sets) > 0 || f.Pairs[0].Observed == "" {
		t.Errorf("ranked: %v, %+v", f.Sets, f.Pairs[0])
	}
}

// What stands beside a difference of scores are scores, not the shares of runs that pass.
func TestTheMeasureThatDecidesIsTheOneThatIsShown(t *testing.T) {
	var records []ledger.Record
	for i := range 12 {
		for arm, score := range map[string]float64{"a": .25, "b": .75} {
			r := scoredRun(fmt.Sprintf("t%02d", i), 0, score)
			r.Arm, r.ArmHash = arm, "sha256:"+arm
			records = append(records, r)
		}
	}
	built := build(t, Input{Records: records, K: []int{1}})
	groups := []*Group{&built.Groups[0], &built.Groups[1]}
	pair, err := Compare(groups[0], groups[1], CompareConfig{Measure: MeasureScore})
	if err != nil {
		t.Fatal(err)
	}
	several, err := CompareArms(groups, false, CompareConfig{Measure: MeasureScore})
	if err != nil {
		t.Fatal(err)
	}
	if pair.RateA.Est != .25 || pair.RateB.Est != .75 || several.Arms[0].Rate.Est != .75 ||
		several.Arms[1].Rate.Est != .25 {
		t.Errorf("%v, %v, %+v", pair.RateA, pair.RateB, several.Arms)
	}
	if head := several.rankedHead()[1]; head != MeasureScore {
		t.Errorf("the column is called %q", head)
	}
}
