package builtin

import (
	"os"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeReaper()
	os.Exit(m.Run())
}
