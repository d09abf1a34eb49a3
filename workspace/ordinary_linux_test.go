package workspace

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestWhatIsHiddenStaysHiddenForAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, "^(TestTheAgentSeesItsOwnDirectoriesOnly|"+
		"TestGradersHaveNeitherNetworkNorHiddenPaths|TestAServiceAnswersItsOwnAgentOnly|TestTwoAttemptsMayUseOnePort|"+
		"TestACopyHoldsNothingThatLeadsOutside)$")
}
