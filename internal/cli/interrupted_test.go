package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
)

// An interrupted command says so by its exit code, whatever it was doing when it failed.
func TestInterruptedCommandsExit130(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	attempt := t.TempDir()
	if err := os.Mkdir(filepath.Join(attempt, "cwd"), 0o700); err != nil {
		t.Fatal(err)
	}
	commands := map[string][]string{
		"sql":  {"fit", "trace", "sql", "../../examples/traces/team.ndjson", "select count(*) from entries"},
		"demo": {"fit", "demo"},
		"grade": {
			"fit", "benchmark", "grade", "--family", "../../examples/quick-shell",
			"--task", "add", "--run-dir", attempt,
		},
	}
	for name, args := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			code := cli.Run(ctx, args, &console.Console{Stdout: &bytes.Buffer{}, Stderr: &stderr})
			if code != console.ExitInterrupted {
				t.Errorf("exit code %d, want 130: %s", code, &stderr)
			}
		})
	}
}
