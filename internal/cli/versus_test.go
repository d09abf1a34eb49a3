package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/versus/versustest"
)

// cmdRunDir writes a run directory in which three agents have worked: rundir DIRECTORY [KIND].
// With "tasks" there are fourteen tasks, and the one that gives up makes mistakes instead; with
// "signed" the results are signed by the user's key.
func cmdRunDir(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: rundir directory [tasks|benchmark|signed]")
	}
	d := three()
	if len(args) > 1 {
		switch args[1] {
		case "tasks":
			d.Tasks, d.Arms[1].Does, d.Arms[2].Does = 14, versustest.Solves, versustest.Mistakes
		case "benchmark":
			d.Workspace = ""
		case "signed":
			key, err := ledger.CreateKey(filepath.Join(ts.Getenv("HOME"), ".config", "fit", "ledger.key"))
			ts.Check(err)
			d.Key = key
		default:
			ts.Fatalf("rundir: unknown kind %q", args[1])
		}
	}
	ts.Check(d.Write(ts.MkAbs(args[0])))
}

func three() versustest.Directory {
	return versustest.Three([3]string{"claude-code", "codex", "pi-agent"}, "claude-sonnet-4-5")
}

// A signal while the tasks are read is an interruption and no mistake in the call.
func TestRunInterruptedWhilePreparing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	code := cli.Run(ctx, []string{
		"fit", "versus", "run", "../../examples/versus/go.yaml", "--agents", "builtin",
		"--output", t.TempDir(),
	}, &console.Console{Stdout: &bytes.Buffer{}, Stderr: &stderr})
	if code != console.ExitInterrupted || !strings.Contains(stderr.String(), "interrupted before the first cell") {
		t.Errorf("exit code %d, want 130: %s", code, &stderr)
	}
}
