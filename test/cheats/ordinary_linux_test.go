package cheats

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// What keeps a cheat from its grader depends on who runs fit. The essential cheats are tried as an
// ordinary user too, in a sandbox and without one.
func TestCheatsOfAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{
		"TestNode", "TestNodeService", "TestPython", "TestPythonHook", "TestPytest", "TestDemo",
		"TestProgramsThatAHookRunsGainNothingByForgedRows",
		"TestHiddenPathsAndSiblingsAreOutOfSight", "TestASpyWithoutWallsSeesEverything", "TestWithoutIsolation",
		"TestLimitsHoldForTheTaskOfAnAgent",
	}, nodeFamily, pythonFamily, demoFamily, scaffoldFamily)
}
