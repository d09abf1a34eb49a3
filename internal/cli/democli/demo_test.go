package democli

import (
	"io"
	"os"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
)

// Numbers that nobody can mean are mistakes of use, and cost nothing.
func TestADemoOfAnImpossibleSizeIsRefused(t *testing.T) {
	for _, runs := range []string{"-1", "0", "1000000000", "many"} {
		con := &console.Console{Stdout: io.Discard, Stderr: io.Discard, Environ: os.Environ()}
		command := New(con)
		command.SetArgs([]string{"--runs", runs})
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetOut(io.Discard)
		if err := command.ExecuteContext(t.Context()); err == nil ||
			runs == "1000000000" && console.Code(err) != console.ExitUsage {
			t.Errorf("--runs %s: %v", runs, err)
		}
	}
}
