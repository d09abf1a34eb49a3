package skilltest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

// TestWhatIsUnknownIsNoFailure: an assertion that no run of an arm decided says nothing about the
// skill, and neither a run without a verdict nor one without usage pulls a mean down.
func TestWhatIsUnknownIsNoFailure(t *testing.T) {
	decided := func(arm string, pass string, tokens *ledger.UsageJSON) ledger.Record {
		return ledger.Record{
			TaskID: "1", Arm: arm, Verdict: ledger.Pass, Tokens: tokens,
			HiddenTests: &ledger.HiddenTests{Details: []json.RawMessage{
				json.RawMessage(`{"test": "says-hello", "pass": ` + pass + `}`),
			}},
		}
	}
	failed := decided(ArmWith, "false", nil)
	failed.Verdict = ledger.Error
	records := []ledger.Record{decided(ArmWithout, "true", nil), failed}
	if got := readingOf(Count{}, Count{Passed: 1, Runs: 1}); got != unknown {
		t.Errorf("an assertion without a run with the skill reads %q", got)
	}
	all := summarise(records)
	if with := all[ArmWith]; with.Runs != 0 || with.WithoutVerdict != 1 ||
		!strings.Contains(with.String(), "none of 1 run has a verdict") {
		t.Errorf("with: %s", with)
	}
	if without := all[ArmWithout]; without.Runs != 1 || without.PassRate.Mean != 1 || without.Tokens != nil ||
		!strings.Contains(without.String(), "an unknown number of tokens") {
		t.Errorf("without: %s", without)
	}
	used := &ledger.UsageJSON{InputTokens: 100}
	records = append(records, decided(ArmWith, "true", nil), decided(ArmWith, "true", used))
	if got := summarise(records)[ArmWith].String(); got !=
		"100% of the assertions pass, 0.0 s, 100 tokens (2 of 3 runs)" {
		t.Errorf("with: %s", got)
	}
}
