package harnesscli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/trace"
)

func newResume(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts agentOptions
	command := &cobra.Command{
		Use:   "resume TRACE",
		Short: "Continue a session that was killed or interrupted",
		Long: `Continue a session of supervise, facilitate, discuss or judge that was killed or interrupted, with the
same conversations, open questions and budgets, all of which are in its trace. Isolation and network are those of the
session unless --isolation and --network say otherwise. A trace that is still being written is refused. The exit codes
are those of the session's own command.`,
		Example: `  fit-harness resume trace.ndjson`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runResume(command.Context(), con, registry, &opts, con.Path(args[0]))
		},
	}
	opts.RegisterModel(command.Flags(), agentsHelp)
	return command
}

func runResume(ctx context.Context, con *console.Console, registry *agent.Registry, opts *agentOptions,
	path string,
) error {
	past, err := harness.Inspect(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return console.Exit(console.ExitUsage, err)
	case errors.Is(err, syscall.EISDIR):
		return console.Usagef("%s is a directory; name the trace file of a session", path)
	case err != nil:
		return console.Usagef("%s: %w", path, err)
	}
	text, err := recall(con, registry, path)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	wiring, _, err := wire(con, registry, opts, path)
	if err != nil {
		return err
	}
	defer announceInterrupt(ctx, con, path)()
	result, err := wiring.Resume(ctx, path, fit.ResumeConfig{
		Options: fit.Options{Base: opts.base()},
		OnLine:  text.Line,
	})
	err = cmp.Or(err, text.Close())
	switch {
	case errors.Is(err, trace.ErrLocked):
		return console.Exit(console.ExitIncomplete, err)
	case result.Reason == "" && err != nil: // it was not resumed at all
		return startError(err)
	}
	if past.Mode == harness.ModeDiscuss {
		if err := reopenedRoom(past.HomeDir).leave(result); err != nil {
			fmt.Fprintf(con.Stderr, "could not save the state for the next run of the discussion: %v\n", err)
		}
	}
	reportGone(con, result)
	return teamError(past.Mode, result, err)
}

// recall returns a renderer that knows what was shown of a session, so that its last line sums up
// all of it.
func recall(con *console.Console, registry *agent.Registry, path string) (*render.Renderer, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := newRenderer(con, registry)
	for line, err := range trace.NewReader(file).All() {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if line.Problem == nil {
			text.Past(line.Envelope)
		}
	}
	return text, nil
}
