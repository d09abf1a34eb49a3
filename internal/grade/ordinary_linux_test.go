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
		"TestRowsCannotBeTakenAwayByWhoInheritsTheDescriptor", "TestAProgramThatIsNotTrustedSeesTheWorkAndTheSystemOnly",
		"TestAReportThatWasThereBeforeIsNotBelieved", "TestTheReportIsOutOfReachForWhatTheCommandStarts",
		"TestProtectedFilesStayAsTheyWereWhileACommandVerifies", "TestProtectedFilesAreRestored",
		"TestAReversedPatchSolvesNothing", "TestLinksOfAProgramThatIsNotTrustedLeadToNothingHidden",
		"TestLinksOfAProgramThatIsKilledLeadToNothingHidden", "TestHelpersOfAHookLoadNothingOfItsProgram",
		"TestAProgramThatIsNotTrustedDoesNotGetTheCasesOfItsHook",
		"TestCheatingNodeAgents/(heap|parent|stream)", "TestNodeAgentsCannotChangeTheContextOfATest",
		"TestNodeTestsHaveTheLibraryOfNode", "TestPythonTestsHaveTheMocksOfTheLibrary",
		"TestGoCodeCannotReadTheProgramOfItsTests", "TestGoAgentsCannotReachTheHiddenTests/(embedded-tests|list-linked)",
	})
}
