package workspace

import (
	"os"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestWhatIsHiddenStaysHiddenForAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		return
	}
	places := systemDirectories(t)
	for _, place := range places {
		if err := os.Chown(place, testenv.Nobody, testenv.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(systemVariable, strings.Join(places, string(os.PathListSeparator)))
	testenv.AsOrdinaryUser(t, []string{
		"TestNothingHiddenIsVisibleWhereverItLies", "TestTheAgentSeesItsOwnDirectoriesOnly",
		"TestGradersHaveNeitherNetworkNorHiddenPaths", "TestAServiceAnswersItsOwnAgentOnly",
		"TestTwoAttemptsMayUseOnePort", "TestACopyHoldsNothingThatLeadsOutside",
		"TestEveryAttemptHasAnIndexOfItsOwnInTheNPMCache", "TestAWarmedGoCacheIsUsedAndStaysAsItIs",
	})
}
