package foreign

import (
	"testing"

	"github.com/fit-eval/fit/ledger"
)

func TestErrorsHaveHarborsNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ class, cause, want string }{
		{ledger.ErrorSetup, ledger.CauseHealthcheck, "HealthcheckError"},
		{ledger.ErrorGrader, ledger.CauseNoReward, "RewardFileNotFoundError"},
		{ledger.ErrorGrader, ledger.CauseEmptyReward, "RewardFileEmptyError"},
		{ledger.ErrorGrader, ledger.CauseTimeout, "VerifierTimeoutError"},
		{ledger.ErrorGrader, ledger.CauseBadReward, "VerifierOutputParseError"},
		{ledger.ErrorGrader, "", "RuntimeError"},
		{ledger.ErrorInterrupted, "", "CancelledError"},
		{ledger.ErrorSetup, "", "RuntimeError"},
		{ledger.ErrorSetup, "of a later version", "RuntimeError"},
	} {
		t.Run(test.class, func(t *testing.T) {
			r := &ledger.Record{Verdict: ledger.Error, ErrorClass: test.class, ErrorCause: test.cause}
			if got := harborExceptionOf(r); got == nil || got.Type != test.want {
				t.Errorf("(%s): %+v, want %s", test.cause, got, test.want)
			}
		})
	}
}
