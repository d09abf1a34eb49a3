package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
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
		// what they could not look at is not missing
		"doctor":        {"fit", "doctor"},
		"versus doctor": {"fit", "versus", "doctor"},
		"agents":        {"fit", "agents", "list"},
		"run": {
			"fit", "benchmark", "run", "--family", "../../examples/quick-shell", "--agent", "builtin",
			"--model-url", "http://127.0.0.1:9", "--output", filepath.Join(t.TempDir(), "runs"),
		},
	}
	for name, args := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := cli.Run(ctx, args, &console.Console{Stdout: &stdout, Stderr: &stderr})
			if code != console.ExitInterrupted || stdout.Len() > 0 && name != "demo" {
				t.Errorf("exit code %d, want 130 and no answer: %s%s", code, &stdout, &stderr)
			}
			if strings.Contains(stderr.String(), "not isolated") {
				t.Errorf("%s", &stderr)
			}
		})
	}
}
