package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// An arm that forges an error of the model's service whenever it would fail has nothing but passes
// left. No claim rests on that.
func TestNoClaimRestsOnErrorsThatAnAgentMayHaveForged(t *testing.T) {
	experiment := func(forged int, mark bool) *Comparison {
		var records []ledger.Record
		for i := range 14 {
			id := fmt.Sprintf("t%02d", i)
			before := outcomes(id, "PFFF")
			after := outcomes(id, "PPPP")
			for k := range after {
				after[k].Arm, after[k].ArmHash = "after", "sha256:b"
				if k < forged {
					after[k] = failedRun(id, k, ledger.ErrorProvider)
					after[k].Arm, after[k].ArmHash = "after", "sha256:b"
					if mark {
						after[k].Unverified = 3
					}
				}
			}
			records = append(append(records, before...), after...)
		}
		built := build(t, Input{Records: records, K: []int{1}})
		groups := map[string]*Group{}
		for i := range built.Groups {
			groups[built.Groups[i].Name] = &built.Groups[i]
		}
		c, err := Compare(groups["default"], groups["after"], CompareConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if mark && groups["after"].Totals.Unverified != 14*forged {
			t.Errorf("%d runs are shown as doubtful", groups["after"].Totals.Unverified)
		}
		return c
	}
	if c := experiment(0, false); c.Decision.Claim != stats.Improved {
		t.Fatalf("without forging: %s", c.Decision.Sentence)
	}
	c := experiment(3, true)
	if c.Decision.Claim == stats.Improved || c.Decision.Claim == stats.Regressed {
		t.Errorf("a claim rests on forged errors: %s", c.Decision.Sentence)
	}
	if all := strings.Join(c.Warnings, "\n"); !strings.Contains(all, "only the agent's own process reported") {
		t.Errorf("nothing is said: %s", all)
	}
	// one doubtful run in four leaves enough to stand on
	if c := experiment(1, true); c.Decision.Claim == stats.Regressed {
		t.Errorf("%s", c.Decision.Sentence)
	}
}

// A retry after such an error counts as doubtful too: an agent must not be able to try until it
// passes.
func TestAClaimDoesNotRestOnRetriesThatAnAgentMayHaveForced(t *testing.T) {
	var records []ledger.Record
	for i := range 14 {
		id := fmt.Sprintf("t%02d", i)
		records = append(records, outcomes(id, "FF")...)
		for k := range 2 {
			r := run(id, k, ledger.Pass)
			r.Arm, r.ArmHash, r.Attempt, r.Unverified = "after", "sha256:b", 3, 2
			records = append(records, r)
		}
	}
	built := build(t, Input{Records: records, K: []int{1}})
	c, err := Compare(&built.Groups[1], &built.Groups[0], CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if built.Groups[1].Name != "default" || c.Decision.Claim != stats.NotProven ||
		!strings.Contains(c.Decision.Sentence, "unverified error") {
		t.Errorf("%s: %s", built.Groups[1].Name, c.Decision.Sentence)
	}
}

// An agent that nobody can see into has begun to work when it is started: a retry bounds its run,
// although nobody saw a turn of its model.
func TestARetryOfAnAgentThatNobodySeesIntoBoundsItsRun(t *testing.T) {
	for _, begun := range []bool{true, false} {
		failed := failedRun("t", 0, ledger.ErrorAgentStart)
		failed.Begun, failed.Final, failed.Turns, failed.Tokens = begun, false, 0, nil
		again := run("t", 0, ledger.Pass)
		again.Attempt = failed.Attempt + 1
		built := build(t, Input{Records: []ledger.Record{failed, again}, K: []int{1}})
		g := &built.Groups[0]
		if (g.Totals.Retried == 1) != begun || (g.Bounds != nil) != begun {
			t.Errorf("begun %t: %d retried, bounds %+v", begun, g.Totals.Retried, g.Bounds)
		}
	}
}

// The rule does not stop on outcomes that are not certain. Where an experiment ends with such, it
// was interrupted, and its other tasks are missing.
func TestAnInterruptedExperimentWasNotStoppedByItsRule(t *testing.T) {
	for _, forged := range []int{0, 1} {
		var records []ledger.Record
		for i := range 12 {
			id := fmt.Sprintf("t%02d", i)
			for arm, verdict := range map[string]string{"a": ledger.Fail, "b": ledger.Pass} {
				r := run(id, 0, verdict)
				r.Arm, r.ArmHash, r.Final = arm, "sha256:"+arm, true
				r.Sequential = &ledger.Sequential{
					Alpha: 0.05, Position: i, Tasks: 24, Runs: 1,
					Baseline: "a", Candidate: "b",
				}
				if i == 3 && arm == "b" {
					r.Unverified = forged
				}
				records = append(records, r)
			}
		}
		built := build(t, Input{Records: records, K: []int{1}})
		if built.Sequential == nil || built.Sequential.Stopped != (forged == 0) {
			t.Errorf("%d forged: %+v", forged, built.Sequential)
		}
	}
}

// What was on its way when the rule stopped has no counterpart in the other arm. It is no missing
// run, and does not take back what the rule has found.
func TestARunInFlightWhenTheRuleStopsIsNotMissingInTheOtherArm(t *testing.T) {
	var records []ledger.Record
	planned := &Planned{Runs: map[string][]int{}, Arms: []string{"a", "b"}}
	for i := range 24 {
		id := fmt.Sprintf("t%02d", i)
		planned.Runs[id] = []int{0}
		for arm, verdict := range map[string]string{"a": ledger.Fail, "b": ledger.Pass} {
			if i > 12 || i == 12 && arm == "a" {
				continue
			}
			r := run(id, 0, verdict)
			r.Arm, r.ArmHash, r.Final = arm, "sha256:"+arm, true
			r.Sequential = &ledger.Sequential{
				Alpha: 0.05, Position: i, Tasks: 24, Runs: 1,
				Baseline: "a", Candidate: "b",
			}
			records = append(records, r)
		}
	}
	built := build(t, Input{Records: records, Planned: planned, K: []int{1}})
	c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if !built.Sequential.Stopped || c.Decision.Claim != stats.Improved || len(built.Warnings) > 0 {
		t.Errorf("%+v: %s; %q", built.Sequential, c.Decision.Sentence, built.Warnings)
	}
}
