package harnesscli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
)

// discussOptions are the flags of fit-harness discuss.
type discussOptions struct {
	teamOptions
	profiles     string
	leadCwd      string
	agentCwd     string
	discussionID string
	resume       string
}

func newDiscuss(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts discussOptions
	command := &cobra.Command{
		Use:   "discuss",
		Short: "Let a lead drive a discussion that people follow in a thread",
		Long: `Let a lead drive a discussion that people follow in a thread. Answers to the lead are posted to
CALLBACK_URL as they come, people's messages are fetched from INBOX_URL, and CORRELATION_ID names the run; without
them the discussion takes place here only. The lead ends it with Adjourn, or suspends it with Recess: a later run with
--resume-context continues with the history, the replies and, on the same machine, the agents' own conversations.

Exit codes: 0 adjourned or recessed · 1 failed or not concluded · 2 usage error · 3 provider, credentials or another
infrastructure failure · 4 stopped by a budget · 130 interrupted.`,
		Example: `  fit-harness discuss --agent-profiles security,docs --discussion-id D_42 --task-text "Shall we drop Python 3.9?" --output trace.ndjson
  fit-harness discuss --agent-profiles security,docs --discussion-id D_42 --resume-context "$RESUME" --task-text "Continue." --output trace2.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runDiscuss(command.Context(), con, registry, &opts)
		},
	}
	flags := command.Flags()
	opts.register(flags, registry, harness.ModeDiscuss)
	flags.StringVar(&opts.profiles, "agent-profiles", "",
		"the participants, separated by commas: NAME, NAME=AGENT or NAME=AGENT:MODEL")
	flags.StringVar(&opts.leadCwd, "lead-cwd", ".", "directory of the lead, and of the profiles")
	flags.StringVar(&opts.agentCwd, "agent-cwd", "",
		"directory that the participants share (default: that of the profile, or this one)")
	flags.StringVar(&opts.discussionID, "discussion-id", "", "the thread that the discussion belongs to")
	flags.StringVar(&opts.resume, "resume-context", "",
		"JSON from an earlier run of the discussion, with the replies since; @FILE reads a file, - standard input")
	return command
}

func runDiscuss(ctx context.Context, con *console.Console, registry *agent.Registry, opts *discussOptions) error {
	resume, err := readResumeContext(con, opts.resume)
	if err != nil {
		return console.Usagef("--resume-context: %s", strings.TrimPrefix(err.Error(), "resume context: "))
	}
	participants, err := parseParticipants(con, registry, opts.profiles, opts.agentCwd, opts.agent.TurnsGiven())
	if err != nil {
		return err
	}
	leadCwd, err := directory(con, "--lead-cwd", opts.leadCwd)
	if err != nil {
		return err
	}
	room, err := openRoom(con, opts.home, opts.discussionID)
	if err != nil {
		return err
	}
	opts.home = room.dir
	if resume != nil {
		resume = room.complete(con, resume)
	}
	result, err := opts.hold(ctx, con, registry, harness.ModeDiscuss,
		func(wiring fit.Wiring, options fit.Options) (*fit.Team, error) {
			return wiring.NewDiscusser(fit.DiscusserConfig{
				LeadCwd:      leadCwd,
				LeadProfile:  opts.leadProfile,
				Lead:         opts.lead(),
				AgentConfigs: participants,
				Options:      options,
				DiscussionID: opts.discussionID,
				Resume:       resume,
			})
		})
	if roomErr := room.leave(result); err == nil && roomErr != nil {
		fmt.Fprintf(con.Stderr, "could not save the state for the next run of the discussion: %v\n", roomErr)
	}
	return err
}

// readResumeContext reads the value of --resume-context: JSON, the name of a file after an @, or a
// dash for standard input. Command lines are too short for long discussions.
func readResumeContext(con *console.Console, value string) (*harness.ResumeContext, error) {
	var data []byte
	var err error
	switch name, isFile := strings.CutPrefix(value, "@"); {
	case value == "-":
		data, err = io.ReadAll(con.Stdin)
	case isFile:
		data, err = os.ReadFile(con.Path(name))
	default:
		data = []byte(value)
	}
	text := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return nil, err
	case text == "" && value != "":
		return nil, errors.New("it is empty, so the earlier conversation would be lost")
	}
	return harness.ParseResumeContext(text)
}
