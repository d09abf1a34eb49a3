package fit

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/sandbox"
)

// Isolations are the values of Wiring.Isolation.
var Isolations = []string{"auto", sandbox.IsolationBwrap, sandbox.IsolationNone}

// isolate decides what the agents of a session see of the machine and how much of it they may use,
// unless the caller has decided, and returns a note about it. In a sandbox, an agent can write to
// its working directory and its own home; it sees the system's directories and the rest of its
// repository, read-only, and nothing else.
func (w Wiring) isolate(ctx context.Context, base *agent.Config, dirs ...string) (note string, err error) {
	isolation := &base.Isolation
	defer func() {
		if err == nil {
			err = w.closeNetwork(ctx, base)
		}
		if cut := ctx.Err(); cut != nil {
			err = cut // what was tried says nothing about the machine
		}
		if base.Limits == (sandbox.Limits{}) {
			base.Limits = sandbox.DefaultLimits(isolation.Kind)
		}
	}()
	asked := cmp.Or(isolation.Kind, w.Isolation, "auto")
	if !slices.Contains(Isolations, asked) {
		return "", &ConfigError{"Isolation", fmt.Errorf("it must be auto, bwrap or none, not %q", asked)}
	}
	const consequence = "agents can read and change what you can"
	if asked == sandbox.IsolationNone {
		isolation.Kind = sandbox.IsolationNone
		return consequence, nil
	}
	detected := sandbox.DetectBwrap(ctx)
	works, leftOpen := detected.Bwrap, detected.LeftOpen
	switch {
	case detected.Unknown != nil:
		return "", fmt.Errorf("isolation could not be tried: %w; try again, or choose isolation none", detected.Unknown)
	case !works.OK && asked == sandbox.IsolationBwrap:
		return "", fmt.Errorf("isolation bwrap does not work here: %s (%s)", works.Detail, works.Fix)
	case !works.OK:
		isolation.Kind = sandbox.IsolationNone
		return fmt.Sprintf("%s, because bubblewrap does not work here: %s (%s)", consequence, works.Detail,
			works.Fix), nil
	}
	if isolation.Kind == "" {
		*isolation = sandbox.Isolation{Kind: sandbox.IsolationBwrap, Network: true, ReadOnly: repositories(ctx, dirs)}
	}
	note = "agents can write to their working directory only; the rest of the machine is read-only or hidden"
	if isolation.LeftOpen = leftOpen; leftOpen != "" {
		note += "; but the sandbox on this machine has known gaps: " + leftOpen + " (fit doctor)"
	}
	return note, nil
}

// repositories returns the parts of the directories' git repositories that lie outside of them: the
// root of the working tree, and the directory of its objects.
func repositories(ctx context.Context, dirs []string) []string {
	var found []string
	for _, dir := range dirs {
		for _, question := range []string{"--show-toplevel", "--git-common-dir"} {
			path, err := git.Output(ctx, dir, "rev-parse", "--path-format=absolute", question)
			if err != nil { // it belongs to none
				break
			}
			within, err := filepath.Rel(dir, path)
			if err != nil ||
				!filepath.IsLocal(within) && !slices.Contains(dirs, path) && !slices.Contains(found, path) {
				found = append(found, path)
			}
		}
	}
	return found
}
