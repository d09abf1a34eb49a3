package harnesscli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
)

// superviseOptions are the flags of fit-harness supervise.
type superviseOptions struct {
	teamOptions
	profile         string
	allowedTools    string
	supervisorTools string
	supervisorCwd   string
	agentCwd        string
	mcpConfig       string
	mcpServer       string
}

func newSupervise(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts superviseOptions
	command := &cobra.Command{
		Use:   "supervise",
		Short: "Let a supervisor lead one agent, or a judge question it",
		Long: `Let a supervisor lead one agent: it hands out the work, looks at what comes back, corrects, and
concludes with a verdict. The two may be of different vendors. With --lead-profile judge the supervisor is a judge; a
profile of that name ships with fit and is used unless .claude/agents/judge.md exists.

Exit codes: 0 concluded with success · 1 concluded with failure, or not concluded · 2 usage error · 3 provider,
credentials or another infrastructure failure · 4 stopped by a budget · 130 interrupted.`,
		Example: fmt.Sprintf(`  fit-harness supervise --lead-agent %s --agent %s --task-file task.md --agent-cwd ./repo --output trace.ndjson
  fit-harness supervise --lead-profile judge --task-file criteria.md --agent-cwd ./repo`, registry.Examples(2)...),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runSupervise(command.Context(), con, registry, &opts)
		},
	}
	flags := command.Flags()
	opts.register(flags, registry, harness.ModeSupervise)
	flags.StringVar(&opts.profile, "agent-profile", "",
		"profile of the agent: .claude/agents/NAME.md in the supervisor's directory")
	flags.StringVar(&opts.allowedTools, "allowed-tools", "", "the only tools the agent may use, separated by commas")
	flags.StringVar(&opts.supervisorTools, "supervisor-allowed-tools", "",
		"the only tools the supervisor may use (default: Read, Glob, Grep, Bash)")
	flags.StringVar(&opts.supervisorCwd, "supervisor-cwd", ".", "directory of the supervisor, and of the profiles")
	flags.StringVar(&opts.agentCwd, "agent-cwd", "", "directory of the agent (default: a new temporary one)")
	flags.StringVar(&opts.mcpConfig, "mcp-config", "",
		`file of tool servers to attach to the agent: {"mcpServers":{…}}`)
	flags.StringVar(&opts.mcpServer, "mcp-server", "",
		"attach the tool server of SERVICE_MCP_URL to the agent under this name")
	return command
}

func runSupervise(ctx context.Context, con *console.Console, registry *agent.Registry, opts *superviseOptions) error {
	leadCwd, err := directory(con, "--supervisor-cwd", opts.supervisorCwd)
	if err != nil {
		return err
	}
	servers, err := attachedServers(con, opts.mcpConfig, opts.mcpServer)
	if err != nil {
		return err
	}
	agentCwd, done, err := opts.workspace(con)
	if err != nil {
		return err
	}
	defer done()
	lead := opts.lead()
	lead.Tools = console.List(opts.supervisorTools)
	supervised := fit.AgentConfig{
		Tools:      console.List(opts.allowedTools),
		MaxTurns:   opts.agent.TurnsGiven(),
		MCPServers: servers,
		Agent:      opts.agent.agent.Value,
		Model:      opts.agent.Model,
	}
	_, err = opts.hold(ctx, con, registry, harness.ModeSupervise,
		func(wiring fit.Wiring, options fit.Options) (*fit.Team, error) {
			return wiring.NewSupervisor(fit.SupervisorConfig{
				SupervisorCwd:     leadCwd,
				SupervisorProfile: opts.leadProfile,
				Supervisor:        lead,
				AgentCwd:          agentCwd,
				AgentProfile:      opts.profile,
				Agent:             supervised,
				Options:           options,
			})
		})
	return err
}

// workspace is the agent's directory. One that nobody named is removed in the end if the agent left
// nothing in it, and reported otherwise.
func (o *superviseOptions) workspace(con *console.Console) (dir string, done func(), err error) {
	if o.agentCwd != "" {
		dir, err = directory(con, "--agent-cwd", o.agentCwd)
		return dir, func() {}, err
	}
	if dir, err = os.MkdirTemp(con.Getenv("TMPDIR"), "fit-harness-agent-"); err != nil {
		return "", nil, fmt.Errorf("make a directory for the agent: %w", err)
	}
	return dir, func() {
		if os.Remove(dir) != nil { // it is not empty
			fmt.Fprintf(con.Stderr, "the agent's files are in %s\n", dir)
		}
	}, nil
}
