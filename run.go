package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// DefaultRunTurns bounds a run whose config and profile say nothing.
const DefaultRunTurns = 50

// RunConfig is one agent with one task.
type RunConfig struct {
	Task string // the whole prompt; required
	Cwd  string // directory the agent works in; empty is the current one

	// Agent is the id of the agent; empty is the profile's, or the first one installed.
	Agent    string
	Model    string // empty is the profile's, or the agent's own
	ModelURL string // model endpoint without /v1; empty is FIT_MODEL_URL, or the agent's own
	Auth     string // subscription or apikey, where there is a choice

	// AgentProfile is the name of a profile: .claude/agents/NAME.md in Cwd.
	AgentProfile string
	// Context says what the agent reads of Cwd by itself: ContextProject, its instruction files,
	// skills, sub-agents and commands; or ContextNone. Empty is ContextProject, but a project whose
	// files would run programs without isolation, such as hooks, is an error unless Context says
	// so.
	Context      string
	AllowedTools []string // the only tools the agent may use; empty is the profile's, or all
	MCPServers   []MCPServer
	Advisor      AdvisorConfig

	MaxTurns   int           // of the model; 0 is the profile's, or DefaultRunTurns; -1 is no limit
	MaxCostUSD float64       // 0 is no limit
	MaxTokens  int64         // of all kinds; 0 is no limit
	Timeout    time.Duration // 0 is no limit

	// Output receives the trace. A caller that has a trace writer sets Trace instead. One of them
	// is required.
	Output   io.Writer
	Trace    *trace.Writer
	Redactor *redact.Redactor // nil is NewRedactor

	// Started, if set, is called once with the agent's id when the agent runs.
	Started func(id string, started agent.Started)
	// Given, if set, is called when the run has ended, with what of its project the agent's model
	// was given.
	Given func(*ledger.Treatment)
}

// Run is the function of the same name, with this wiring.
func (w Wiring) Run(ctx context.Context, cfg RunConfig) (result RunResult, err error) {
	w = w.filled()
	if strings.TrimSpace(cfg.Task) == "" {
		return RunResult{}, &ConfigError{"RunConfig.Task", errors.New("it is empty; say what the agent has to do")}
	}
	if err := w.checkTrace("RunConfig", cfg.Trace, cfg.Output); err != nil {
		return RunResult{}, err
	}
	settings, profile, err := w.runSettings(&cfg)
	if err != nil {
		return RunResult{}, err
	}
	played, installation, err := w.choose(ctx, cfg.Agent, settings)
	if err != nil {
		return RunResult{}, err
	}
	settings.Installation = &installation
	limited := cmp.Or(cfg.MaxTurns, profile.MaxTurns) != 0
	if !limited && played.Info().Capabilities.MaxTurns != agent.Unsupported {
		settings.MaxTurns = DefaultRunTurns
	}
	home, err := scratch.Make("", "fit-run-")
	if err != nil {
		return RunResult{}, fmt.Errorf("make a home for the agent: %w", err)
	}
	defer func() { _ = home.Remove() }()
	settings.Home = home.Path
	if err := agent.Check(played, settings); err != nil {
		return RunResult{}, err
	}
	note, err := w.isolate(ctx, &settings, settings.Dir)
	if err == nil {
		err = checkNetwork(played, settings)
	}
	if err == nil {
		err = agent.CheckPrograms(played.Info(), settings)
	}
	if err != nil {
		return RunResult{}, err
	}
	connect, secrets := w.toolServer(1)
	redactor := w.redactorOr(cfg.Redactor, secrets, serverSecrets(AgentConfig{MCPServers: cfg.MCPServers}))
	writer, err := w.openTrace(cfg.Trace, cfg.Output, redactor)
	if err != nil {
		return RunResult{}, err
	}
	end, err := w.openGateway(&settings, redactor)
	if err != nil {
		return RunResult{}, err
	}
	defer end()
	id := string(played.Info().ID)
	w.ready(settings, note, AgentConfig{Agent: id, Model: settings.Model, Cwd: settings.Dir})
	if cfg.Given != nil {
		given, err := w.projectOf(played, settings, &cfg, redactor)
		if err != nil {
			return RunResult{}, err
		}
		defer func() { end(); cfg.Given(readGiven(given, result)) }()
	}
	return harness.Run(ctx, harness.RunConfig{
		Agent:      played,
		Session:    settings,
		Task:       cfg.Task,
		Timeout:    cfg.Timeout,
		Trace:      writer,
		Injections: profile.Injections,
		Advisor:    cfg.Advisor,
		NewAgent:   w.newAgent,
		Connect:    connect,
		Redactor:   redactor,
		Started: func(started agent.Started) {
			if cfg.Started != nil {
				cfg.Started(id, started)
			}
		},
	})
}

// runSettings turns a config into that of the agent. What the config leaves out comes from the
// profile, whose text becomes part of the system prompt.
func (w Wiring) runSettings(cfg *RunConfig) (agent.Config, harness.RunProfile, error) {
	dir, err := directory("RunConfig.Cwd", cfg.Cwd)
	if err != nil {
		return agent.Config{}, harness.RunProfile{}, err
	}
	profile, err := harness.LoadRunProfile(filepath.Join(dir, ".claude", "agents"), cfg.AgentProfile, cfg.Advisor)
	if err != nil {
		return agent.Config{}, profile, &ConfigError{"RunConfig.AgentProfile", err}
	}
	if profile.Cwd != "" {
		if !filepath.IsAbs(profile.Cwd) {
			profile.Cwd = filepath.Join(dir, profile.Cwd)
		}
		if dir, err = directory("the profile's cwd", profile.Cwd); err != nil {
			return agent.Config{}, profile, err
		}
	}
	settings := agent.Config{
		Dir:          dir,
		ModelURL:     cfg.ModelURL,
		Model:        cmp.Or(cfg.Model, profile.Model),
		Auth:         cfg.Auth,
		Context:      cfg.Context,
		MaxTurns:     max(0, cmp.Or(cfg.MaxTurns, profile.MaxTurns)),
		AllowedTools: cfg.AllowedTools,
		MCPServers:   cfg.MCPServers,
		SystemPrompt: profile.SystemPrompt,
	}
	if len(settings.AllowedTools) == 0 {
		settings.AllowedTools = profile.Tools
	}
	if cfg.AgentProfile != "" {
		settings.ExtraEnv = []string{"LIBHARNESS_AGENT_PROFILE=" + cfg.AgentProfile}
	}
	cfg.Agent = cmp.Or(cfg.Agent, profile.Agent)
	err = w.fillBase(&settings)
	if budget := (gateway.Budget{USD: cfg.MaxCostUSD, Tokens: cfg.MaxTokens}); budget != (gateway.Budget{}) {
		settings.Account = gateway.NewAccount("this run", budget, settings.Prices)
	}
	return settings, profile, err
}

// directory resolves a directory of a config.
func directory(field, path string) (string, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", &ConfigError{field, err}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &ConfigError{field, fmt.Errorf("%s is not a directory", cmp.Or(path, dir))}
	}
	return dir, nil
}
