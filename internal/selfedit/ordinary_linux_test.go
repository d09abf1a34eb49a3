package selfedit

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestTheGuardHoldsForAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{
		"TestHooksOfEveryConfigurationAreProtected", "TestGitHooksInAConfiguredDirectoryAreNeverWritable",
		"TestIncludedConfigurationIsNeverWritable", "TestNestedSettingsOnlyNarrow", "TestAKilledWriteHasALine",
		"TestSwappingAtTheWorstMoment", "TestAFileOrDirectoryWithoutPermissionIsAFailure",
	})
}
