package harnesscli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/harness/mcpserve"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/trace"
)

// resumeOptions are the flags of fit-harness resume.
type resumeOptions struct {
	agent   agentOptions
	tracker trackerOption
}

func newResume(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts resumeOptions
	command := &cobra.Command{
		Use:   "resume TRACE",
		Short: "Go on with a session whose process was killed",
		Long: `Go on with a session of supervise, facilitate, discuss or judge whose process was killed: with the same conversations, open questions and budgets, all of
which are in its trace. A trace that is still being written is refused. The exit codes are those of the session's own command.`,
		Example: `  fit-harness resume trace.ndjson`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runResume(command.Context(), con, registry, &opts, con.Path(args[0]))
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.agent.modelURL, "model-url", "",
		"model endpoint the agents talk to, without /v1 (also FIT_MODEL_URL)")
	opts.agent.auth.Choices = []string{"subscription", "apikey"}
	flags.Var(&opts.agent.auth, "auth", "how the agents are logged in, where there is a choice")
	opts.tracker.register(flags)
	return command
}

func runResume(ctx context.Context, con *console.Console, registry *agent.Registry, opts *resumeOptions,
	path string) error {
	past, err := harness.Inspect(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return console.Exit(console.ExitUsage, err)
	case err != nil:
		return console.Usagef("%s: %w", path, err)
	}
	tracker, err := opts.tracker.environment(con)
	if err != nil {
		return err
	}
	chosen := choice{modelURL: opts.agent.modelURL, spawner: localSpawner()}
	if chosen.modelURL == "" {
		chosen.modelURL = con.Getenv("FIT_MODEL_URL")
	}
	if err := checkURL(chosen.modelURL); err != nil {
		return err
	}
	base := baseConfig(con, chosen, opts.agent.auth.Value, tracker)
	if err := checkMembers(ctx, con, registry, past.Mode, harness.Options{Base: base}, past.Members); err != nil {
		return err
	}
	if past.Mode == harness.ModeJudge {
		room, err := reopenRoom(ctx, con, registry, past.Members[0], &base)
		if err != nil {
			return err
		}
		defer os.RemoveAll(room)
	}
	return takeUp(ctx, con, registry, past, path, base)
}

// reopenRoom gives a judge that is taken up the sandbox that it had. It returns the judge's neutral
// directory.
func reopenRoom(ctx context.Context, con *console.Console, registry *agent.Registry, judge harness.AgentConfig,
	base *agent.Config) (string, error) {
	if slices.Contains(judge.DisallowedTools, "Bash") {
		return judge.Cwd, nil
	}
	if !sandbox.Detect(ctx).Bwrap.OK {
		return "", console.Exitf(console.ExitIncomplete,
			"the judge could run commands in a read-only sandbox, and there is none any more; judge anew")
	}
	parts := teamParts{options: harness.Options{Base: *base}}
	if err := isolateJudge(ctx, con, registry, &parts, judge.Agent, judge.Cwd,
		filepath.Join(judge.Cwd, exhibitName)); err != nil {
		return "", err
	}
	*base = parts.options.Base
	return judge.Cwd, nil
}

func takeUp(ctx context.Context, con *console.Console, registry *agent.Registry, past harness.Interrupted, path string,
	base agent.Config) error {
	keys := mcpserve.NewKeyring(len(past.Members))
	channel := openChannel(con)
	defer channel.close()
	parts := teamParts{query: queryOf(registry),
		redactor: newRedactor(con, registry, keys.Secrets(), channel.secrets())}
	cfg := harness.ResumeConfig{Query: parts.query, Redactor: parts.redactor,
		Options: harness.Options{Base: base, Connect: keys.Connect(mcpserve.Config{})}}
	if past.Mode == harness.ModeDiscuss {
		cfg.Replies, cfg.Inbox = channel.connect(parts)
	}
	text := newRenderer(con, registry)
	text.Line(trace.Envelope{Source: trace.Orchestrator,
		Event: fmt.Appendf(nil, `{"type":%q,"mode":%q}`, trace.TypeSessionStart, past.Mode)})
	cfg.OnLine = text.Line
	introduce(con, past.Members)
	result, err := harness.Resume(ctx, path, cfg)
	if closeErr := text.Close(); err == nil {
		err = closeErr
	}
	switch {
	case errors.Is(err, trace.ErrLocked):
		return console.Exit(console.ExitIncomplete, err)
	case result.Reason == "" && err != nil: // it was not taken up at all
		return console.Exit(console.ExitUsage, err)
	}
	channel.report(con, result)
	if past.Mode == harness.ModeDiscuss {
		if err := reopenedRoom(past.HomeDir).leave(result); err != nil {
			fmt.Fprintf(con.Stderr, "what the next run of the discussion needs could not be kept: %v\n", err)
		}
	}
	return teamError(past.Mode, result, err)
}
