package harnesscli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
)

// facilitateOptions are the flags of fit-harness facilitate.
type facilitateOptions struct {
	teamOptions
	profiles       string
	facilitatorCwd string
	agentCwd       string
}

func newFacilitate(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts facilitateOptions
	command := &cobra.Command{
		Use:   "facilitate",
		Short: "Let a facilitator lead several agents, of any vendor",
		Long: `Let a facilitator lead several agents. Each participant is a profile, .claude/agents/NAME.md in the
facilitator's directory; its agent is set by --agent-profiles NAME=AGENT, by the profile's own front matter, or by
--agent. They talk to each other through the tools Ask, Answer and Announce; the session ends when the facilitator
calls Conclude or a limit is reached.

Exit codes: 0 concluded with success · 1 concluded with failure, or not concluded · 2 usage error · 3 provider,
credentials or another infrastructure failure · 4 stopped by a budget · 130 interrupted.`,
		Example: fmt.Sprintf(`  fit-harness facilitate --agent-profiles security=%s,docs=%s --task-file review.md --output trace.ndjson
  fit-harness facilitate --agent builtin --agent-profiles alice,bob --lead-profile coach --task-text "Plan the release" --timeout 30m`,
			registry.Examples(2)...),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runFacilitate(command.Context(), con, registry, &opts)
		},
	}
	flags := command.Flags()
	opts.register(flags, registry, harness.ModeFacilitate)
	flags.StringVar(&opts.profiles, "agent-profiles", "",
		"the participants, separated by commas: NAME, NAME=AGENT or NAME=AGENT:MODEL")
	flags.StringVar(&opts.facilitatorCwd, "facilitator-cwd", ".", "directory of the facilitator, and of the profiles")
	flags.StringVar(&opts.agentCwd, "agent-cwd", "",
		"directory that the participants share (default: that of the profile, or this one)")
	return command
}

func runFacilitate(ctx context.Context, con *console.Console, registry *agent.Registry, opts *facilitateOptions) error {
	participants, err := parseParticipants(con, registry, opts.profiles, opts.agentCwd, opts.agent.TurnsGiven())
	if err != nil {
		return err
	}
	if len(participants) == 0 {
		return console.Usagef("a facilitated session needs participants: --agent-profiles NAME,NAME")
	}
	leadCwd, err := directory(con, "--facilitator-cwd", opts.facilitatorCwd)
	if err != nil {
		return err
	}
	_, err = opts.hold(ctx, con, registry, harness.ModeFacilitate,
		func(wiring fit.Wiring, options fit.Options) (*fit.Team, error) {
			return wiring.NewFacilitator(fit.FacilitatorConfig{
				FacilitatorCwd:     leadCwd,
				FacilitatorProfile: opts.leadProfile,
				Facilitator:        opts.lead(),
				AgentConfigs:       participants,
				Options:            options,
			})
		})
	return err
}

// parseParticipants reads --agent-profiles. A participant has the name of its profile unless the
// profile says another.
func parseParticipants(con *console.Console, registry *agent.Registry, list, cwd string,
	maxTurns int,
) ([]fit.AgentConfig, error) {
	dir := "" // that of the profile, or the one we are in
	if cwd != "" {
		var err error
		if dir, err = directory(con, "--agent-cwd", cwd); err != nil {
			return nil, err
		}
	}
	var participants []fit.AgentConfig
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(list, ",") {
		profile, played, _ := strings.Cut(entry, "=")
		id, model, _ := strings.Cut(played, ":")
		if _, err := registry.Get(strings.TrimSpace(played)); err == nil { // a command behind a prefix has colons too
			id, model = played, ""
		}
		cfg := fit.AgentConfig{
			AgentProfile: strings.TrimSpace(profile),
			Agent:        strings.TrimSpace(id),
			Model:        strings.TrimSpace(model),
			Cwd:          dir,
			MaxTurns:     maxTurns,
		}
		if cfg.AgentProfile == "" {
			return nil, console.Usagef("--agent-profiles %q: the entry %q names no profile; write NAME, NAME=AGENT "+
				"or NAME=AGENT:MODEL", list, strings.TrimSpace(entry))
		}
		if cfg.Agent != "" {
			if _, err := registry.Get(cfg.Agent); err != nil {
				return nil, console.Usagef("--agent-profiles: %w", err)
			}
		}
		participants = append(participants, cfg)
	}
	return participants, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// directory resolves a directory that was given by a flag.
func directory(con *console.Console, flag, path string) (string, error) {
	path = cmp.Or(path, ".")
	dir, err := filepath.Abs(con.Path(path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if !isDirectory(dir) {
		return "", console.Usagef("%s %s is not a directory", flag, path)
	}
	return dir, nil
}
