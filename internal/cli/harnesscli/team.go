package harnesscli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/redact"
)

// agentOptions say which agent does the work, with which model, and what holds it.
type agentOptions struct {
	console.Agents
	agent console.AgentID
}

func (o *agentOptions) register(flags *pflag.FlagSet, registry *agent.Registry, turns int, turnsUsage string) {
	o.agent.Registry = registry
	flags.Var(&o.agent, "agent", agentUsage)
	help := agentsHelp
	help.MaxTurns = turnsUsage
	o.Register(flags, turns, help)
}

// agentsHelp is what sessions say about the flags of agents.
var agentsHelp = console.AgentsHelp{
	Isolations: fit.Isolations,
	Model:      "model of the agent (default: the agent's default)",
	ModelURL: "model endpoint the agent talks to, without /v1: a proxy, a local server or the scripted model (also " +
		"FIT_MODEL_URL)",
	Context: "project files agents read on their own: project is instruction files (CLAUDE.md, " +
		"AGENTS.md), skills, sub-agents and commands; without isolation, programs such as hooks run only if this is said " +
		"(default project)",
	Isolation: "how agents are isolated from the rest of the machine; auto is bubblewrap where it works, otherwise " +
		"none",
	Network: "network access of agents: model is their model and the session's tools, and nothing else; none is for " +
		"the built-in agent (default: host, the machine's network)",
}

const agentUsage = "agent to run, as fit agents list names it, or any other: cmd:PROGRAM, acp:PROGRAM, http://HOST " +
	"(default: the first one installed)"

// base is what the flags say of all agents of a session.
func (o *agentOptions) base() agent.Config {
	return agent.Config{ModelURL: o.ModelURL, Auth: o.Auth.Value, Context: o.Context.Value}
}

// wire is the wiring of a command, with a trace that is opened when the session is about to start.
func wire(con *console.Console, registry *agent.Registry, o *agentOptions, output string) (fit.Wiring, *sink, error) {
	out := &sink{con: con, registry: registry, path: output}
	policy, err := o.Gateway.Policy(con)
	recorded := gateway.RecordConfig{Policy: policy}
	if output != "" {
		recorded.Path = calls.Path(con.Path(output))
	}
	return fit.Wiring{
		Registry:    registry,
		Environ:     con.Environ,
		Prices:      con.Prices(),
		Warnings:    con.Stderr,
		Isolation:   o.Isolation.Value,
		Network:     o.Network.Value,
		Calls:       recorded,
		WorkTracker: o.WorkTracker.Value,
		OutputLimit: o.OutputLimit(),
		OpenTrace:   out.open,
		Ready:       func(p fit.ReadySession) { printAgents(con, p) },
	}, out, err
}

// options turns the flags into what the library wants.
func (o *teamOptions) options(con *console.Console) (fit.Options, error) {
	advisor, err := o.advisor.config()
	if err != nil {
		return fit.Options{}, err
	}
	here, err := directory(con, "the current directory", ".")
	if err != nil {
		return fit.Options{}, err
	}
	options := fit.Options{
		DefaultAgent: o.agent.agent.Value,
		DefaultModel: o.agent.Model,
		DefaultCwd:   here,
		Advisor:      advisor,
		Base:         o.agent.base(),
		Errors:       harness.ErrorPolicy{Retries: o.retries.Value, KeepGoing: o.keepGoing},
	}
	if o.retries.Value == 0 {
		options.Errors.Retries = -1
	}
	if o.home != "" {
		if options.HomeDir, err = filepath.Abs(con.Path(o.home)); err != nil {
			return fit.Options{}, fmt.Errorf("--session-home: %w", err)
		}
	}
	o.limits.apply(&options)
	return options, nil
}

// hold runs the session that a constructor makes of the wiring and the options. The error already
// has its exit code.
func (o *teamOptions) hold(ctx context.Context, con *console.Console, registry *agent.Registry, mode harness.Mode,
	build func(fit.Wiring, fit.Options) (*fit.Team, error),
) (fit.Result, error) {
	task, err := o.task.load(con)
	if err != nil {
		return fit.Result{}, err
	}
	options, err := o.options(con)
	if err != nil {
		return fit.Result{}, err
	}
	wiring, out, err := wire(con, registry, &o.agent, o.output)
	if err != nil {
		return fit.Result{}, err
	}
	wiring.ToolServer = mcpserve.Config{HTTP: o.transport.Value == "http"}
	team, err := build(wiring, options)
	if err != nil {
		return fit.Result{}, console.Exit(console.ExitUsage, asFlag(err))
	}
	defer announceInterrupt(ctx, con, o.output)()
	result, err := team.Run(ctx, task)
	err = cmp.Or(err, out.Close())
	reportGone(con, result)
	return result, teamError(mode, result, err)
}

// announceInterrupt says what happens when the session is interrupted, until the returned function
// is called.
func announceInterrupt(ctx context.Context, con *console.Console, output string) func() bool {
	line := "interrupted: stopping the agents, which takes up to 10 s; press Ctrl-C again to stop immediately"
	if output != "" {
		line += "; continue later with: fit-harness resume " + output
	}
	return context.AfterFunc(ctx, func() { fmt.Fprintln(con.Stderr, line) })
}

// startError gives the error of a session that did not start its exit code: a request that cannot
// be fulfilled is the caller's mistake; credentials or a program that are missing are not.
func startError(err error) error {
	var coded *console.Error
	var config *fit.ConfigError
	var lacks *agent.CapabilityError
	var programs *agent.ProgramsError
	switch {
	case errors.As(err, &coded):
		return err
	case errors.As(err, &config), errors.As(err, &lacks), errors.As(err, &programs):
		return console.Exit(console.ExitUsage, asFlag(err))
	default:
		return console.Exit(console.ExitIncomplete, err)
	}
}

// asFlag names the flag instead of the field of a config.
func asFlag(err error) error {
	var config *fit.ConfigError
	if !errors.As(err, &config) {
		return err
	}
	flag, known := map[string]string{
		"ModelURL":               "--model-url or FIT_MODEL_URL",
		"WorkTracker":            "--work-tracker",
		"Agent":                  "--agent",
		"Isolation":              "--isolation",
		"Network":                "--network",
		"Calls.Replay":           "--replay",
		"RunConfig.AgentProfile": "--agent-profile",
		"RunConfig.Cwd":          "--cwd",
	}[config.Field]
	if !known {
		return err
	}
	return fmt.Errorf("%s: %w", flag, config.Err)
}

// printAgents says how the agents are isolated, and who takes part.
func printAgents(con *console.Console, prepared fit.ReadySession) {
	fmt.Fprintf(con.Stderr, "isolation: %s; %s\n", prepared.Isolation, prepared.IsolationNote)
	if prepared.Network != sandbox.NetworkHost {
		fmt.Fprintf(con.Stderr, "network: %s; %s\n", prepared.Network, prepared.NetworkNote)
	}
	for _, m := range prepared.Members {
		if m.Name == "" { // of a run, which introduces its agent when it has started
			continue
		}
		line := fmt.Sprintf("%s: %s", m.Name, m.Agent)
		if m.Model != "" {
			line += ", model " + m.Model
		}
		if m.AgentProfile != "" {
			line += ", profile " + m.AgentProfile
		}
		fmt.Fprintln(con.Stderr, line)
	}
}

func newRedactor(con *console.Console, registry *agent.Registry) *redact.Redactor {
	return fit.Wiring{Registry: registry, Environ: con.Environ, Warnings: con.Stderr}.NewRedactor()
}
