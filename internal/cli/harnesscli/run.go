package harnesscli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/harness/mcpserve"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
)

// runOptions are the flags of fit-harness run.
type runOptions struct {
	task         taskOptions
	agent        agentOptions
	cwd          string
	profile      string
	allowedTools string
	maxTurns     console.Count
	maxCost      console.Dollars
	timeout      console.Span
	output       string
	mcpConfig    string
	mcpServer    string
	advisor      advisorOptions
	tracker      trackerOption
}

// defaultRunTurns bounds a run when nobody says.
const defaultRunTurns = 50

func newRun(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := runOptions{maxTurns: console.Count{Value: defaultRunTurns}}
	command := &cobra.Command{
		Use:   "run",
		Short: "Give one agent one task",
		Example: `  fit-harness run --task-text "Fix the failing test" --cwd ./repo --output trace.ndjson
  fit-harness run --agent builtin --model-url http://127.0.0.1:8080 --agent-model my-model --task-file task.md`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runRun(command.Context(), con, registry, opts) },
	}
	flags := command.Flags()
	opts.task.register(flags)
	opts.agent.register(flags, registry)
	flags.StringVar(&opts.cwd, "cwd", ".", "directory the agent works in")
	flags.StringVar(&opts.profile, "agent-profile", "", "profile of the agent: .claude/agents/NAME.md in its directory")
	flags.StringVar(&opts.allowedTools, "allowed-tools", "",
		"the only tools the agent may use, separated by commas (default: the agent's own)")
	flags.Var(&opts.maxTurns, "max-turns", "turns of the model; 0 is unlimited")
	flags.Var(&opts.maxCost, "max-cost-usd", "end the run when it has cost this much")
	flags.Var(&opts.timeout, "timeout", "end the run after this time, such as 15m")
	flags.StringVar(&opts.output, "output", "", "write the trace to this file and readable text to standard output")
	flags.StringVar(&opts.mcpConfig, "mcp-config", "", `file of tool servers to attach: {"mcpServers":{…}}`)
	flags.StringVar(&opts.mcpServer, "mcp-server", "", "attach the tool server of SERVICE_MCP_URL under this name")
	opts.advisor.register(flags)
	opts.tracker.register(flags)
	return command
}

func runRun(ctx context.Context, con *console.Console, registry *agent.Registry, opts runOptions) error {
	task, err := opts.task.load(con)
	if err != nil {
		return err
	}
	settings, err := opts.session(con)
	if err != nil {
		return err
	}
	profile, advisor, err := opts.applyProfile(con, &settings)
	if err != nil {
		return err
	}
	chosen, err := opts.agent.choose(ctx, con, registry)
	if err != nil {
		return err
	}
	settings.Spawner = chosen.spawner
	settings.Model, settings.ModelURL, settings.Auth = chosen.model, chosen.modelURL, opts.agent.auth.Value
	home, err := os.MkdirTemp("", "fit-run-")
	if err != nil {
		return fmt.Errorf("make a home for the agent: %w", err)
	}
	defer os.RemoveAll(home)
	settings.Home = home
	if err := agent.Check(chosen.agent, settings); err != nil {
		return cannotPlay(err)
	}
	keys := mcpserve.NewKeyring(1)
	redactor := newRedactor(con, registry, keys.Secrets(), serverSecrets(settings.MCPServers))
	out, err := openSink(con, registry, opts.output, redactor)
	if err != nil {
		return err
	}
	result, err := harness.Run(ctx, harness.RunConfig{
		Agent:      chosen.agent,
		Session:    settings,
		Task:       task,
		Timeout:    opts.timeout.Value,
		Trace:      out.Writer,
		Injections: profile.Injections,
		Advisor:    advisor,
		Query:      queryOf(registry),
		Connect:    keys.Connect(mcpserve.Config{}),
		Redactor:   redactor,
		Started:    func(started agent.Started) { announce(con, chosen, started) },
	})
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return runError(result, err)
}

// applyProfile lets the profile fill in what no flag says, and puts its text and what agents must
// know of an advisor into the system prompt.
func (o *runOptions) applyProfile(con *console.Console, settings *agent.Config) (harness.RunProfile,
	harness.AdvisorConfig, error) {
	advisor, err := o.advisor.config()
	if err != nil {
		return harness.RunProfile{}, advisor, err
	}
	tracker, err := o.tracker.environment(con)
	if err != nil {
		return harness.RunProfile{}, advisor, err
	}
	settings.ExtraEnv = []string{tracker}
	name := strings.TrimSpace(o.profile)
	profile, err := harness.LoadRunProfile(filepath.Join(settings.Dir, ".claude", "agents"), name, advisor)
	if err != nil {
		return profile, advisor, console.Exit(console.ExitUsage, err)
	}
	settings.SystemPrompt = profile.SystemPrompt
	if name != "" {
		settings.ExtraEnv = append(settings.ExtraEnv, "LIBHARNESS_AGENT_PROFILE="+name)
	}
	if len(settings.AllowedTools) == 0 {
		settings.AllowedTools = profile.Tools
	}
	if profile.MaxTurns > 0 && !o.maxTurns.Given {
		settings.MaxTurns = profile.MaxTurns
	}
	if profile.Cwd != "" {
		if settings.Dir, err = directory(con, "the profile's cwd", absolute(settings.Dir, profile.Cwd)); err != nil {
			return profile, advisor, err
		}
	}
	if o.agent.agent.Value == "" && profile.Agent != "" {
		if err := o.agent.agent.Set(profile.Agent); err != nil {
			return profile, advisor, console.Usagef("profile %q: agent %q: %w", name, profile.Agent, err)
		}
	}
	if o.agent.model == "" {
		o.agent.model = profile.Model
	}
	return profile, advisor, nil
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// session turns the flags into the agent's configuration.
func (o *runOptions) session(con *console.Console) (agent.Config, error) {
	dir, err := directory(con, "--cwd", o.cwd)
	if err != nil {
		return agent.Config{}, err
	}
	cfg := agent.Config{
		Dir:          dir,
		Environ:      con.Environ,
		MaxTurns:     o.maxTurns.Value,
		MaxCostUSD:   o.maxCost.Value,
		AllowedTools: console.List(o.allowedTools),
		Prices:       con.Prices(),
	}
	cfg.MCPServers, err = attachedServers(con, o.mcpConfig, o.mcpServer)
	return cfg, err
}

func announce(con *console.Console, chosen choice, started agent.Started) {
	line := fmt.Sprintf("agent: %s %s", chosen.agent.Info().ID, started.Version)
	if started.Model != "" {
		line += ", model " + started.Model
	}
	if started.Auth != "" {
		line += ", logged in by " + started.Auth
	}
	fmt.Fprintln(con.Stderr, strings.TrimSpace(line))
}

// runError gives the end of a run its exit code and, unless all is well, one line that says what
// happened.
func runError(result harness.RunResult, err error) error {
	if err != nil {
		var notFound *agent.NotFoundError
		var lacks *agent.CapabilityError
		if errors.As(err, &lacks) || errors.As(err, &notFound) {
			return cannotPlay(err)
		}
		return err
	}
	switch result.Reason {
	case session.OutcomeSuccess:
		return nil
	case session.OutcomeBudget:
		return console.Exitf(console.ExitBudget, "the budget is used up")
	case session.OutcomeAuth, session.OutcomeProvider:
		return console.Exit(console.ExitIncomplete, describe(result))
	case session.OutcomeCancelled:
		return console.Exitf(console.ExitInterrupted, "interrupted; the trace is complete up to here")
	default:
		return console.Exit(console.ExitNegative, describe(result))
	}
}

var reasons = map[session.Outcome]string{
	session.OutcomeError:    "the agent failed",
	session.OutcomeMaxTurns: "the agent ran out of turns; --max-turns sets how many it has",
	session.OutcomeTimeout:  "the agent ran out of time; --timeout sets how much it has",
	session.OutcomeAborted:  "the agent was aborted",
	session.OutcomeNoResult: "the agent ended without a result",
	session.OutcomeOutput:   "the agent printed too much and was ended",
	session.OutcomeAuth:     "the agent could not log in",
	session.OutcomeProvider: "the model's service failed",
}

func describe(result harness.RunResult) error {
	reason := reasons[result.Reason]
	if reason == "" {
		reason = string(result.Reason)
	}
	switch {
	case result.Err == nil:
		return errors.New(reason)
	case strings.HasPrefix(result.Err.Error(), reason):
		return result.Err // it says the same and more
	default:
		return fmt.Errorf("%s: %w", reason, result.Err)
	}
}

// localSpawner starts agents on this machine.
func localSpawner() sandbox.ProcessSpawner { return sandbox.NewSpawner() }
