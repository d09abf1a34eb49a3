package sandbox_test

import (
	"os"
	"testing"

	"github.com/fit-eval/fit/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeReaper()
	if role := os.Getenv("SANDBOX_TEST_ROLE"); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}
