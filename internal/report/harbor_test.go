package report

import (
	"testing"

	"github.com/fit-eval/fit/ledger"
)

func TestErrorsHaveHarborsNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ class, message, want string }{
		{ledger.ErrorSetup, `workspace a.b.0.1: healthcheck: "exit 1" failed 3 times in a row`, "HealthcheckError"},
		{
			ledger.ErrorGrader, "the verifier wrote no reward: there is neither reward.json nor reward.txt",
			"RewardFileNotFoundError",
		},
		{ledger.ErrorGrader, "the verifier's reward.txt is empty", "RewardFileEmptyError"},
		{ledger.ErrorGrader, "the verifier timed out after 2000ms", "VerifierTimeoutError"},
		{
			ledger.ErrorGrader, "the verifier's reward.json cannot be read: get /logs: it is too large",
			"VerifierOutputParseError",
		},
		{ledger.ErrorGrader, "the verifier's reward.txt is not a regular file", "VerifierOutputParseError"},
		{ledger.ErrorInterrupted, "it was stopped", "CancelledError"},
		{ledger.ErrorSetup, "no space left on device", "RuntimeError"},
	} {
		r := &ledger.Record{Verdict: ledger.Error, ErrorClass: test.class, ErrorMessage: test.message}
		if got := harborExceptionOf(r); got == nil || got.Type != test.want {
			t.Errorf("%s: %+v, want %s", test.message, got, test.want)
		}
	}
}
