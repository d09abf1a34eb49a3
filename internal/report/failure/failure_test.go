package failure

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

func TestChecksListsEverythingThatARunFailed(t *testing.T) {
	r := &ledger.Record{
		Verdict: ledger.Fail,
		Invariants: &ledger.Invariants{Details: []json.RawMessage{
			json.RawMessage(`{"test":"good","pass":true}`),
			json.RawMessage(`{"test":"bad","pass":false,"message":"got 1, not 2"}`),
			json.RawMessage(`{"parseError":true,"raw":"?"}`),
		}},
		Verify:       &ledger.Verify{ExitCode: 3},
		JudgeVerdict: &ledger.JudgeMajority{Verdict: ledger.Fail, Summary: "it is not done"},
	}
	var got []string
	for _, row := range Checks(r) {
		got = append(got, row.Check+": "+row.Message)
	}
	want := []string{
		"bad: got 1, not 2", "(unnamed): not a row: ?", "verifyCommand: exit code 3",
		"judge: it is not done",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if got := Checks(&ledger.Record{Verdict: ledger.Fail, Grade: &ledger.Grade{Reason: "no"}}); len(got) != 1 ||
		got[0].Message != "no" {
		t.Errorf("a grade without rows: %v", got)
	}
}

func TestCausesHaveAWayOut(t *testing.T) {
	causes := Causes([]ledger.Record{
		{Verdict: ledger.Pass},
		{Verdict: ledger.Error, ErrorClass: ledger.ErrorAuth, ErrorMessage: "no key"},
		{Verdict: ledger.Error, ErrorClass: ledger.ErrorGrader, ErrorMessage: "a\x1b[31m"},
		{Verdict: ledger.Error, ErrorClass: ledger.ErrorGrader},
		{Verdict: ledger.Error, ErrorClass: ledger.ErrorGrader, ErrorCause: ledger.CauseNoReward},
	})
	if len(causes) != 3 || causes[0].Runs != 2 || causes[0].Class != ledger.ErrorGrader {
		t.Fatalf("%+v", causes)
	}
	if got := causes[0].Lines()[0]; got != `2 runs without a verdict (grader): a\x1b[31m` {
		t.Errorf("%q", got)
	}
	for _, cause := range causes {
		if cause.WayOut == "" {
			t.Errorf("%s has no way out", cause.Class)
		}
	}
}
