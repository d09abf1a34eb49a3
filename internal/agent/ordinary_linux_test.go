package agent_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestLoginCopiesOfAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{"TestTheCopyOfAKilledProcessIsRemovedByTheNextStart"})
}
