package builtin

import (
	"os"
	"testing"

	"github.com/fit-eval/fit/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeReaper()
	os.Exit(m.Run())
}
