package cli_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// Isolation, the network of agents and whose calls a team's tools take depend on who runs fit.
func TestAgentsOfAnOrdinaryUserAreIsolated(t *testing.T) {
	t.Parallel()
	testenv.AsOrdinaryUser(t, []string{"TestScripts/^(run|network|team_forged|left_open|terminated)$"},
		"testdata/script/run.txt", "testdata/script/network.txt", "testdata/script/team_forged.txt",
		"testdata/script/left_open.txt", "testdata/script/terminated.txt")
}
