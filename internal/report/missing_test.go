package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// planOf plans runs of twelve tasks for two arms.
func planOf(tasks, runs int) *Planned {
	p := &Planned{Arms: []string{"a", "b"}, Runs: map[string][]int{}}
	for i := range tasks {
		for run := range runs {
			id := fmt.Sprintf("t%02d", i)
			p.Runs[id] = append(p.Runs[id], run)
		}
	}
	return p
}

func compareWith(t *testing.T, planned *Planned, records []ledger.Record) *Comparison {
	t.Helper()
	built := build(t, Input{Records: records, Planned: planned, K: []int{1}})
	c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAClaimDoesNotStandOnALostShard(t *testing.T) {
	a, b := repeat("FFF", 12), repeat("FFF", 12)
	for i := range 8 {
		b[i] = "PPF"
	}
	whole := append(armRuns("a", a...), armRuns("b", b...)...)
	if c := compareWith(t, planOf(12, 3), whole); c.Decision.Claim != stats.Improved || c.Bounds != nil {
		t.Fatalf("%+v", c.Decision)
	}
	// The third run of every task was in a shard that is gone, and with it a task.
	var left []ledger.Record
	for _, r := range whole {
		if r.RunIndex != 2 && r.TaskID != "t11" {
			left = append(left, r)
		}
	}
	planned := planOf(12, 3)
	planned.Absent = []string{"shard 3/3"}
	c := compareWith(t, planned, left)
	if c.Decision.Claim != stats.NotProven || c.Unsure.A.Missing != 14 || c.Bounds == nil ||
		c.Bounds.Worst >= c.Decision.Effect || c.Bounds.Best <= c.Decision.Effect {
		t.Errorf("%+v %+v %+v", c.Decision, c.Unsure, c.Bounds)
	}
	var out bytes.Buffer
	if err := c.Text(&out); err != nil {
		t.Fatal(err)
	}
	wantIn(t, out.String(), "28 missing runs could change the answer", "shard 3/3",
		"worst/best case over 28 uncertain runs", "every arm: 22 of 36 runs have a verdict")
}

// The pass rate rests on the tasks that have a verdict.
func TestTasksWithoutAVerdictAreNotCounted(t *testing.T) {
	planned := planOf(12, 2)
	planned.Arms = []string{"a"}
	built := build(t, Input{Records: armRuns("a", "PP", "PF", "FF", "PP"), Planned: planned, K: []int{1}})
	var out bytes.Buffer
	if err := built.Text(&out, nil); err != nil {
		t.Fatal(err)
	}
	wantIn(t, out.String(), "pass rate over 4 of 12 tasks: 62.5%")
}

func TestAClaimThatNoMissingRunCanChangeStands(t *testing.T) {
	a, b := repeat("FFFFF", 20), repeat("PPPPP", 20)
	a[0] = "FFFFE"
	if c := compareWith(t, planOf(20, 5), append(armRuns("a", a...), armRuns("b", b...)...)); c.Decision.Claim !=
		stats.Improved || c.Unsure.A.Missing != 1 || c.ErrorsA[ledger.ErrorProvider] != 1 {
		t.Errorf("%+v", c)
	}
}

// An agent that can make its attempt look like a failure of the provider chooses what is missing,
// or gets another try.
func TestNoClaimStandsOnEndingsThatAnAgentCanForge(t *testing.T) {
	a, b := repeat("PF", 12), repeat("PF", 12)
	for i := range 7 {
		b[i] = "PP"
	}
	records := append(armRuns("a", a...), armRuns("b", b...)...)
	if c := compareWith(t, nil, records); c.Decision.Claim != stats.Improved {
		t.Fatalf("%+v", c.Decision)
	}
	for i := range 3 { // the passes of three tasks are second tries
		first := failedRun(fmt.Sprintf("t%02d", i), 1, ledger.ErrorProvider)
		first.Arm, first.ArmHash, first.Final, first.Unverified = "b", "sha256:b", false, 1
		records = append(records, first)
		for j := range records {
			if r := &records[j]; r.Arm == "b" && r.TaskID == first.TaskID && r.RunIndex == 1 &&
				r.Verdict != ledger.Error {
				r.Attempt, r.Unverified = 2, 1
			}
		}
	}
	c := compareWith(t, nil, records)
	if c.Decision.Claim == stats.Improved || c.Unsure.B.Retried != 3 {
		t.Errorf("%+v %+v", c.Decision, c.Unsure)
	}
	var out bytes.Buffer
	if err := c.Markdown(&out); err != nil {
		t.Fatal(err)
	}
	wantIn(t, out.String(), "b: 3 attempts ended in errors: provider 3",
		"retried after the agent had begun to work: 0 of 24 runs of a, 3 of 24 of b (Fisher's p = 0.234)")
}

func TestJUnitShowsMissingCells(t *testing.T) {
	records := armRuns("a", repeat("PPP", 6)...)
	r := build(t, Input{Records: records, Planned: planOf(10, 3), K: []int{1}})
	var out bytes.Buffer
	if err := r.JUnit(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), `message="missing"`); n != 12+30 {
		t.Errorf("%d of 42 missing runs are shown:\n%s", n, out.String())
	}
	wantIn(t, out.String(), `name="a" tests="30" failures="0" errors="12"`,
		`name="b" tests="30" failures="0" errors="30"`)
}

func TestMissingRunsLowerTheLimitOfTheRate(t *testing.T) {
	all := build(t, Input{Records: armRuns("a", repeat("PPP", 12)...), K: []int{1}}).Groups[0]
	some := build(t, Input{Records: armRuns("a", repeat("PPP", 6)...), Planned: planOf(12, 3), K: []int{1}}).Groups[0]
	if all.LowerLimit() < .7 || some.LowerLimit() > .5 {
		t.Errorf("all runs: %v, half of them: %v", all.LowerLimit(), some.LowerLimit())
	}
	grown := planOf(12, 3)
	grown.Grown = []string{"after 24 attempts from 12 tasks × 2 runs to 12 × 3"}
	looked := build(t, Input{Records: armRuns("a", repeat("PPP", 12)...), Planned: grown, K: []int{1}}).Groups[0]
	if looked.LowerLimit() > all.LowerLimit()-.05 {
		t.Errorf("looked at once: %v, and enlarged: %v", all.LowerLimit(), looked.LowerLimit())
	}
}

// Who adds runs until something shows finds something.
func TestAnEnlargedExperimentNeedsMoreEvidence(t *testing.T) {
	a, b := repeat("PF", 12), repeat("PF", 12)
	for i := range 6 {
		b[i] = "PP"
	}
	records := append(armRuns("a", a...), armRuns("b", b...)...)
	planned := planOf(12, 2)
	if c := compareWith(t, planned, records); c.Decision.Claim != stats.Improved || c.Decision.PAdj != c.Decision.P {
		t.Fatalf("%+v", c.Decision)
	}
	planned.Grown = []string{"after 24 attempts from 12 tasks × 1 runs to 12 × 2"}
	c := compareWith(t, planned, records)
	if c.Decision.Claim == stats.Improved || c.Decision.PAdj != 4*c.Decision.P {
		t.Errorf("%+v", c.Decision)
	}
	wantIn(t, strings.Join(c.Warnings, "\n"), "the sample size was changed after results were recorded",
		"after 24 attempts from 12 tasks", "multiplied by 4")
}

// Who adds arms until one wins finds a winner: the report says that arms were added, and among how
// many comparisons a claim holds.
func TestAddedArmsAreAnnounced(t *testing.T) {
	for name, test := range map[string]struct {
		arms  []string
		sizes []Size
		want  []string
	}{
		"a first candidate": {
			[]string{"a", "b"},
			[]Size{{Records: 24, Tasks: 12, Runs: 2, Arms: 1}, {Tasks: 12, Runs: 2, Arms: 2}},
			[]string{"(after 24 attempts from 1 to 2): whether they ran side by side is seen in the times of their runs"},
		},
		"more of them": {
			[]string{"a", "b", "c", "d"},
			[]Size{
				{Records: 48, Tasks: 12, Runs: 2, Arms: 2},
				{Records: 72, Tasks: 12, Runs: 2, Arms: 3},
				{Tasks: 12, Runs: 2, Arms: 4},
			},
			[]string{
				"(after 48 attempts from 2 to 3; after 72 attempts from 3 to 4): ", "all 4 are compared together",
				"corrected for 6 comparisons",
			},
		},
		"before anything was seen": {
			[]string{"a", "b", "c"},
			[]Size{{Tasks: 12, Runs: 2, Arms: 2}, {Tasks: 12, Runs: 2, Arms: 3}},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			planned := planOf(12, 2)
			planned.Arms = test.arms
			planned.Grow(test.sizes...)
			a, b := armRuns("a", repeat("PF", 12)...), armRuns("b", repeat("PP", 12)...)
			c := compareWith(t, planned, append(a, b...))
			warnings := strings.Join(c.Warnings, "\n")
			wantIn(t, warnings, test.want...)
			pairs := float64(len(test.arms) * (len(test.arms) - 1) / 2) // which the plan compares
			if test.want == nil && strings.Contains(warnings, "number of arms") ||
				c.Decision.PAdj != pairs*c.Decision.P {
				t.Errorf("%s, p = %v, %v", warnings, c.Decision.P, c.Decision.PAdj)
			}
		})
	}
}

// A cost that was computed from what an agent had reported when it was cut off is an estimate, and
// whoever reads it must know.
func TestEstimatedCostsSaySo(t *testing.T) {
	records := outcomes("t1", "PPP")
	records[1].CostSource = session.CostEstimated
	r := build(t, Input{Records: records})
	if r.Totals.EstimatedCosts != 1 {
		t.Errorf("%d estimates", r.Totals.EstimatedCosts)
	}
	var text strings.Builder
	if err := r.Text(&text, []int{1}); err != nil {
		t.Fatal(err)
	}
	wantIn(t, text.String(), "$0.75 (1 of 3 attempts estimated)")
}

// Whatever is estimated beside the pass rate has bounds for the runs without an outcome, too.
func TestEveryNumberOfAnArmHasBounds(t *testing.T) {
	planned := planOf(12, 2)
	planned.Arms = []string{"a"}
	records := armRuns("a", repeat("PE", 12)...)
	for i := range records {
		if records[i].Verdict == ledger.Pass {
			records[i].Score = new(.5)
		}
	}
	g := &build(t, Input{Records: records, Planned: planned, K: []int{1, 2}}).Groups[0]
	for name, want := range map[string]Bounds{
		"pass@1": {Worst: .5, Best: 1}, "pass@2": {Worst: 1, Best: 1}, "atLeast@2": {Worst: 0, Best: 1},
		"score": {Worst: .25, Best: .75}, "score@2": {Worst: .5, Best: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, there := g.BoundsOf[name]; !there && name != "atLeast@2" || there && (got.Worst != want.Worst ||
				got.Best != want.Best) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	var text bytes.Buffer
	g.headText(&text)
	wantIn(t, text.String(), "worst/best case of pass@2 1.0000 to 1.0000, score 0.2500 to 0.7500, score@1")
}

// A task that one of two experiments lacks counts its planned runs, not one, and the difference
// says which tasks it is of.
func TestTasksOfOneExperimentCountTheirPlannedRuns(t *testing.T) {
	b := armRuns("b", append(repeat("PPP", 10), repeat("FFF", 10)...)...)
	c := compared(t, CompareConfig{}, armRuns("a", repeat("FFF", 10)...), b)
	want := stats.Exclusions{
		Baseline:  stats.Exclusion{Excluded: 30, Planned: 60},
		Candidate: stats.Exclusion{Planned: 60},
	}
	if c.Decision.Excluded != want || c.Unsure.A.Unplanned != 10 || c.Unsure.runs() != 30 {
		t.Errorf("%+v, unsure %+v", c.Decision.Excluded, c.Unsure)
	}
	if b := c.Bounds; b == nil || b.Worst != 0 || b.Best != 0.5 {
		t.Errorf("bounds %+v", b)
	}
	var out bytes.Buffer
	if err := c.Text(&out); err != nil {
		t.Fatal(err)
	}
	wantIn(t, out.String(), "exclusion rates differ by 50.0 points", "30 excluded",
		"the observed difference in pass rate on the 10 tasks with runs of both is +100.0", "(10 tasks of both)",
		"worst/best case over 30 uncertain runs: difference +0.0 to +50.0 points")
}
