package harnesscli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/harness/mcpserve"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/redact"
)

// team is a session that can be held, of whatever mode.
type team interface {
	Members() []harness.AgentConfig
	Run(ctx context.Context, task string) (harness.Result, error)
}

// teamParts are what every mode needs to be built.
type teamParts struct {
	query    harness.Query
	options  harness.Options
	output   io.Writer
	redactor *redact.Redactor
}

// teamSession is one command that holds a session.
type teamSession struct {
	con      *console.Console
	registry *agent.Registry
	opts     *teamOptions
	mode     harness.Mode
	// build makes the session. It is called twice: first to check everything before anything is
	// written, then for good.
	build func(teamParts) (team, error)
	// secrets are redacted beyond those of the environment.
	secrets map[string]string
	// adjust, if set, completes the configuration of agents that the first build has shown to take
	// part.
	adjust func(*teamParts, []harness.AgentConfig) error
}

// hold runs the session and returns its result; the error already has its exit code.
func (s *teamSession) hold(ctx context.Context) (harness.Result, error) {
	task, err := s.opts.task.load(s.con)
	if err != nil {
		return harness.Result{}, err
	}
	parts, err := s.parts(ctx)
	if err != nil {
		return harness.Result{}, err
	}
	members, err := s.rehearse(ctx, &parts)
	if err != nil {
		return harness.Result{}, err
	}
	keys := mcpserve.NewKeyring(len(members))
	parts.redactor = newRedactor(s.con, s.registry, keys.Secrets(), s.secrets)
	if parts.options.Connect, err = connection(keys, s.opts.transport.Value); err != nil {
		return harness.Result{}, err
	}
	out, err := openSink(s.con, s.registry, s.opts.output, parts.redactor)
	if err != nil {
		return harness.Result{}, err
	}
	parts.options.Trace = out.Writer
	held, err := s.build(parts)
	if err != nil {
		_ = out.Close() // the first error is the one to tell
		return harness.Result{}, console.Exit(console.ExitUsage, err)
	}
	introduce(s.con, members)
	result, err := held.Run(ctx, task)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return result, teamError(s.mode, result, err)
}

// parts turns the flags into what the library wants.
func (s *teamSession) parts(ctx context.Context) (teamParts, error) {
	advisor, err := s.opts.advisor.config()
	if err != nil {
		return teamParts{}, err
	}
	tracker, err := s.opts.tracker.environment(s.con)
	if err != nil {
		return teamParts{}, err
	}
	chosen, err := s.opts.agent.choose(ctx, s.con, s.registry)
	if err != nil {
		return teamParts{}, err
	}
	here, err := directory(s.con, "the current directory", ".")
	if err != nil {
		return teamParts{}, err
	}
	parts := teamParts{query: queryOf(s.registry), options: harness.Options{
		DefaultAgent:    string(chosen.agent.Info().ID),
		DefaultModel:    chosen.model,
		DefaultCwd:      here,
		DefaultMaxTurns: limitOf(s.opts.maxTurns.Value),
		Advisor:         advisor,
		Base:            baseConfig(s.con, chosen, s.opts.agent.auth.Value, tracker),
		Errors:          harness.ErrorPolicy{Retries: s.opts.retries.Value, FailSession: s.opts.failFast},
	}}
	if s.opts.retries.Value == 0 {
		parts.options.Errors.Retries = -1
	}
	if s.opts.home != "" {
		if parts.options.HomeDir, err = filepath.Abs(s.con.Path(s.opts.home)); err != nil {
			return teamParts{}, fmt.Errorf("--session-home: %w", err)
		}
	}
	s.opts.limits.apply(&parts.options)
	return parts, nil
}

// rehearse builds the session without starting it, and makes sure that every agent that takes part
// is there and can do its part.
func (s *teamSession) rehearse(ctx context.Context, parts *teamParts) ([]harness.AgentConfig, error) {
	trial := *parts
	trial.output, trial.redactor = io.Discard, redact.New(redact.Config{})
	planned, err := s.build(trial)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	members := planned.Members()
	if err := checkMembers(ctx, s.con, s.registry, s.mode, parts.options, members); err != nil {
		return nil, err
	}
	if s.adjust != nil {
		return members, s.adjust(parts, members)
	}
	return members, nil
}

// queryOf makes the agents of a session from the registry.
func queryOf(registry *agent.Registry) harness.Query {
	return func(cfg harness.AgentConfig) (agent.Agent, error) { return registry.Get(cfg.Agent) }
}

// baseConfig is what all agents of a session have in common.
func baseConfig(con *console.Console, chosen choice, auth, tracker string) agent.Config {
	return agent.Config{
		Environ:  con.Environ,
		ExtraEnv: []string{tracker},
		ModelURL: chosen.modelURL,
		Auth:     auth,
		Spawner:  chosen.spawner,
		Prices:   con.Prices(),
	}
}

func newRedactor(con *console.Console, registry *agent.Registry, more ...map[string]string) *redact.Redactor {
	extra := registry.Secrets(con.Environ)
	for _, secrets := range more {
		for name, value := range secrets {
			extra[name] = value
		}
	}
	return redact.New(redact.Config{Environ: con.Environ, Extra: extra, Warn: con.Stderr})
}

// connection is how the session's agents reach its tools.
func connection(keys mcpserve.Keyring, transport string) (func(*harness.Dispatcher) (harness.Connector, error), error) {
	var cfg mcpserve.Config
	if transport == "stdio" {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the program that agents can start: %w", err)
		}
		cfg.Stdio = []string{program, "harness", stdioCommand}
		// a copy under the name that means this command already
		if name := filepath.Base(program); name == "fit-harness" || name == "fit-eval" {
			cfg.Stdio = []string{program, stdioCommand}
		}
	}
	return keys.Connect(cfg), nil
}

// checkMembers makes sure that the agents of all members are installed and can do what is asked of
// them.
func checkMembers(ctx context.Context, con *console.Console, registry *agent.Registry, mode harness.Mode,
	options harness.Options, members []harness.AgentConfig) error {
	checked := map[string]bool{}
	for _, m := range members {
		played, err := registry.Get(m.Agent)
		if err != nil {
			return console.Usagef("%s: %w", m.Name, err)
		}
		if !isDirectory(m.Cwd) {
			return console.Usagef("%s: %s is no directory", m.Name, m.Cwd)
		}
		if err := harness.CheckMember(played, mode, m, options); err != nil {
			return cannotPlay(fmt.Errorf("%s: %w", m.Name, err))
		}
		if checked[m.Agent] {
			continue
		}
		checked[m.Agent] = true
		if _, err := played.Probe(ctx, hostOf(con, options.Base.Spawner)); err != nil {
			return console.Exit(console.ExitIncomplete, fmt.Errorf("%s: %w", m.Name, err))
		}
	}
	return nil
}

// cannotPlay gives an agent's refusal its exit code: a request that cannot be fulfilled is the
// caller's mistake; credentials or a program that are not there are not.
func cannotPlay(err error) error {
	var lacks *agent.CapabilityError
	if errors.As(err, &lacks) {
		return console.Exit(console.ExitUsage, err)
	}
	return console.Exit(console.ExitIncomplete, err)
}

// introduce says who takes part.
func introduce(con *console.Console, members []harness.AgentConfig) {
	for _, m := range members {
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
