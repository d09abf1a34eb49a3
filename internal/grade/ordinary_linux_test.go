package grade_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// What the tested program and the hook's programs try is closed to them whoever starts fit: as root
// by another identity, as an ordinary user by namespaces alone.
func TestAttacksOnGradersByAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{
		"TestATestedProgramCannotRewriteItsGrader", "TestGitInHooksRunsNothingThatTheAgentHasPlanted",
		"TestAProgramThatAHookDoesNotTrustReachesNothingOfIt", "TestRowsForgedOnAnInheritedDescriptorDoNotHelp",
		"TestCheatingNodeAgents/(heap|parent|stream)", "TestGoCodeCannotReadTheProgramOfItsTests",
		"TestAProgramThatIsNotTrustedSeesTheWorkAndTheSystemOnly", "TestNodeAgentsCannotChangeTheContextOfATest",
		"TestProtectedFilesStayAsTheyWereWhileACommandVerifies",
		"TestGoAgentsCannotReachTheHiddenTests/(embedded-tests|list-linked)",
	})
}
