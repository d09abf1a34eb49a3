package bridge_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestCallbacksOfAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{"TestRedirectsAreNotFollowed"})
}
