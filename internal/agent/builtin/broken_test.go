package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// endings is a spawner whose programs end in one way.
type endings struct {
	result sandbox.SpawnResult
	err    error
}

func (e endings) Spawn(context.Context, sandbox.SpawnSpec, io.Writer, io.Writer) (sandbox.SpawnResult, error) {
	return e.result, e.err
}

// What this machine failed to do for the model is no result for it: the prompt ends with an error
// that says whose it is.
func TestFailuresOfTheMachineAreNotToldToTheModel(t *testing.T) {
	t.Parallel()
	bwrap := sandbox.Isolation{Kind: sandbox.IsolationBwrap}
	for name, test := range map[string]struct {
		end       endings
		isolation sandbox.Isolation
		ours      error // nil: told to the model
	}{
		"a sandbox that is not made": {
			endings{err: fmt.Errorf("run: %w", sandbox.ErrBroken)}, bwrap, sandbox.ErrBroken,
		},
		"a process that is not made": {endings{err: syscall.ENOMEM}, sandbox.Isolation{}, syscall.ENOMEM},
		"a sandbox that somebody killed": {
			endings{result: sandbox.SpawnResult{Signal: "SIGKILL"}}, bwrap, agent.ErrKilled,
		},
		"a command that kills itself": {
			endings{result: sandbox.SpawnResult{Signal: "SIGKILL"}}, sandbox.Isolation{}, nil,
		},
		"a command that uses too much": {
			endings{result: sandbox.SpawnResult{Signal: "SIGKILL", Exceeded: "memory"}}, bwrap, nil,
		},
		"a command that fails":     {endings{result: sandbox.SpawnResult{ExitCode: 137}}, bwrap, nil},
		"a directory that is gone": {endings{err: fmt.Errorf("run: %w", syscall.ENOENT)}, bwrap, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, `{"turns":[{"calls":[{"bash":"true"}]},{"text":"done"}]}`)
			cfg := b.config()
			cfg.Spawner, cfg.Isolation = test.end, test.isolation
			got := b.prompt(t.Context(), New(), cfg, "go")
			told, outcome := b.toolResults(), session.OutcomeError
			if test.ours == nil {
				outcome = session.OutcomeSuccess
			}
			if got.Outcome != outcome || !errors.Is(got.Err, test.ours) || (len(told) == 0) != (test.ours != nil) {
				t.Errorf("%s: %v, and the model was told %q", got.Outcome, got.Err, told)
			}
		})
	}
}

// A command line that is too long is the model's own, with and without a sandbox.
func TestACommandThatIsTooLongIsToldToTheModel(t *testing.T) {
	t.Parallel()
	isolations := []sandbox.Isolation{{}}
	if sandbox.DetectBwrap(t.Context()).Bwrap.OK {
		isolations = append(isolations, sandbox.Isolation{Kind: sandbox.IsolationBwrap})
	}
	for _, isolation := range isolations {
		b := newBench(t, `{"turns":[{"calls":[{"bash":"true `+strings.Repeat("x", 200_000)+`"}]},{"text":"done"}]}`)
		cfg := b.config()
		cfg.Isolation = isolation
		got := b.prompt(t.Context(), New(), cfg, "go")
		told := strings.Join(b.toolResults(), "\n")
		if !got.Success || !strings.Contains(told, "argument list too long") {
			t.Errorf("%s: %v, and the model was told %q", isolation.Kind, got.Err, told)
		}
	}
}
