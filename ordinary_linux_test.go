package fit_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestAgentsOfAnOrdinaryUserHaveLimitsThatNobodySet(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{"TestAgentsHaveLimitsThatNobodySet"})
}
