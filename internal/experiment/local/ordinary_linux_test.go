package local

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestAHookOfAnOrdinaryUserThatItsAgentOverwrites(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{"TestAHookThatTheAgentOverwritesIsNoticed", "TestAReadOnlyTaskPasses"})
}
