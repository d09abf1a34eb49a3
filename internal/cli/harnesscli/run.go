package harnesscli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report/given"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// runOptions are the flags of fit-harness run.
type runOptions struct {
	task         taskOptions
	agent        agentOptions
	cwd          string
	profile      string
	allowedTools string
	maxCost      console.Dollars
	maxTokens    console.Count
	timeout      console.Span
	output       string
	mcpConfig    string
	mcpServer    string
	advisor      advisorOptions
}

func newRun(con *console.Console, registry *agent.Registry) *cobra.Command {
	var opts runOptions
	command := &cobra.Command{
		Use:   "run",
		Short: "Run one agent on one task",
		Example: `  fit-harness run --task-text "Fix the failing test" --cwd ./repo --output trace.ndjson
  fit-harness run --agent builtin --model-url http://127.0.0.1:8080 --model my-model --task-file task.md`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runRun(command.Context(), con, registry, opts) },
	}
	flags := command.Flags()
	opts.task.register(flags)
	opts.agent.register(flags, registry, fit.DefaultRunTurns, "turns of the model; 0 is unlimited")
	flags.StringVar(&opts.cwd, "cwd", ".", "directory the agent works in")
	flags.StringVar(&opts.profile, "agent-profile", "", "profile of the agent: .claude/agents/NAME.md in its directory")
	flags.StringVar(&opts.allowedTools, "allowed-tools", "",
		"the only tools the agent may use, separated by commas (default: the agent's own)")
	flags.Var(&opts.maxCost, "max-cost-usd", "end the run when it has cost this much")
	flags.Var(&opts.timeout, "timeout", "end the run after this time, e.g. 15m")
	flags.Var(&opts.maxTokens, "max-tokens", "end the run when it has used this many tokens; 0 is unlimited")
	flags.StringVar(&opts.output, "output", "", "write the trace to this file and readable text to standard output")
	flags.StringVar(&opts.mcpConfig, "mcp-config", "", `file of tool servers to attach: {"mcpServers":{…}}`)
	flags.StringVar(&opts.mcpServer, "mcp-server", "", "attach the tool server of SERVICE_MCP_URL under this name")
	opts.advisor.register(flags)
	return command
}

func runRun(ctx context.Context, con *console.Console, registry *agent.Registry, opts runOptions) error {
	task, err := opts.task.load(con)
	if err != nil {
		return err
	}
	cfg, err := opts.config(con)
	if err != nil {
		return err
	}
	cfg.Task = task
	wiring, out, err := wire(con, registry, &opts.agent, opts.output)
	if err != nil {
		return err
	}
	result, err := wiring.Run(ctx, cfg)
	err = cmp.Or(err, out.Close())
	return runError(result, err)
}

// config turns the flags into what the library wants.
func (o *runOptions) config(con *console.Console) (fit.RunConfig, error) {
	dir, err := directory(con, "--cwd", o.cwd)
	if err != nil {
		return fit.RunConfig{}, err
	}
	advisor, err := o.advisor.config()
	if err != nil {
		return fit.RunConfig{}, err
	}
	cfg := fit.RunConfig{
		Cwd:          dir,
		Agent:        o.agent.agent.Value,
		Model:        o.agent.Model,
		ModelURL:     o.agent.ModelURL,
		Auth:         o.agent.Auth.Value,
		Context:      o.agent.Context.Value,
		AgentProfile: strings.TrimSpace(o.profile),
		AllowedTools: console.List(o.allowedTools),
		Advisor:      advisor,
		MaxTurns:     o.agent.TurnsGiven(),
		MaxCostUSD:   o.maxCost.Value,
		MaxTokens:    int64(o.maxTokens.Value),
		Timeout:      o.timeout.Value,
		Started:      func(id string, started agent.Started) { announce(con, id, started) },
		Given:        func(given *ledger.Treatment) { sayGiven(con, given) },
	}
	cfg.MCPServers, err = attachedServers(con, o.mcpConfig, o.mcpServer)
	return cfg, err
}

func announce(con *console.Console, id string, started agent.Started) {
	line := strings.TrimSpace("agent: " + id + " " + started.Version)
	if started.Model != "" {
		line += ", model " + started.Model
	}
	if started.Auth != "" {
		line += ", credentials: " + started.Auth
	}
	fmt.Fprintln(con.Stderr, line)
}

// sayGiven says which files of the project the agent's model was given.
func sayGiven(con *console.Console, t *ledger.Treatment) {
	if line := given.Line(t); line != "" {
		fmt.Fprintln(con.Stderr, line)
	}
}

// runError gives the end of a run its exit code and, unless all is well, one line that says what
// happened.
func runError(result fit.RunResult, err error) error {
	if err != nil {
		return startError(err)
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
	session.OutcomeMaxTurns: "the agent ran out of turns; raise --max-turns",
	session.OutcomeTimeout:  "the agent ran out of time; raise --timeout",
	session.OutcomeAborted:  "the agent was aborted",
	session.OutcomeNoResult: "the agent ended without a result",
	session.OutcomeOutput:   "the agent printed more than the output limit",
	session.OutcomeAuth:     "the agent could not log in",
	session.OutcomeProvider: "the model provider failed",
}

func describe(result fit.RunResult) error {
	reason := cmp.Or(reasons[result.Reason], string(result.Reason))
	switch {
	case result.Err == nil:
		return errors.New(reason)
	case strings.HasPrefix(result.Err.Error(), reason):
		return result.Err // it says the same and more
	default:
		return fmt.Errorf("%s: %w", reason, result.Err)
	}
}
