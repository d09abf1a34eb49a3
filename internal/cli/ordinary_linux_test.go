package cli_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// Isolation and the network of agents depend on who runs fit.
func TestAgentsOfAnOrdinaryUserAreIsolated(t *testing.T) {
	t.Parallel()
	testenv.AsOrdinaryUser(t, "^TestScripts$/^(run|network)$", "testdata/script/run.txt",
		"testdata/script/network.txt")
}
