package experimentcli

import (
	"bytes"
	"context"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/task"
)

// A signal before the first cell is an interruption, wherever it finds the preparation.
func TestInterruptedBeforeTheFirstCell(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	con := &console.Console{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}
	plan, output := &experiment.Plan{}, t.TempDir()
	dir, err := experiment.OpenDirectory(output, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	run := Run{
		Console: con,
		Prepared: &experiment.Prepared{
			Setup: experiment.Setup{Family: &task.Family{Tasks: []task.Task{
				{ID: "t", Settings: task.Settings{Workspace: "worktree", Repo: t.TempDir()}},
			}}},
			Plan: plan,
		},
		Machine: &local.Machine{Registry: &agent.Registry{}},
		Dir:     dir,
		Output:  output,
	}
	_, err = run.Do(ctx)
	const want = "interrupted before the first cell; nothing was started"
	if err == nil || err.Error() != want || console.Code(err) != console.ExitInterrupted {
		t.Errorf("Do = %v with code %d, want %q with 130", err, console.Code(err), want)
	}
}
