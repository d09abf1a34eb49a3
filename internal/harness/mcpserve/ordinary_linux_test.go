package mcpserve_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestForgedCallsInASessionOfAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{
		"TestTheAgentsOwnProgramsAreServed", "TestACallOfAnotherProcessIsRefusedAndTraced",
		"TestAProgramThatTheLeadRunsIsRefused",
	})
}
