// Package codex runs the Codex command line.
//
// For a single prompt it starts `codex exec --json` with the prompt on standard input. For several
// it keeps one process and speaks the protocol of `codex app-server`, in which a second prompt
// costs milliseconds and an interrupt is clean. The app server is also used for a single prompt if
// only its stream says in time what is needed: with a limit of turns or cost, which the program
// does not have itself and which we enforce by counting; for a conversation that is resumed,
// because the counters of tokens continue from what was consumed before; without a model's name,
// because `exec` does not say which model it has chosen; and in a project with settings of its own,
// because only there can ours win over them without being on a command line, and hooks be seen.
//
// Everything that the program keeps (configuration, login, sessions, temporary files) is in the
// session's own home. Nothing of the user's is read, and plugins and apps are off.
//
// With context project the program reads what the working directory brings: AGENTS.md, skills,
// sub-agents and settings. Ours win over the latter in everything that a project never decides
// (endpoint, credentials, proxy, permissions, model, telemetry), and switch its hooks and tool
// servers off unless they may run. What lies above the working directory is not looked for. With
// context none it reads nothing of the project.
package codex

import (
	"context"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

// agentID is the agent's name in the registry.
const agentID session.AgentID = "codex"

const installHint = "npm install -g @openai/codex"

// Agent is Codex.
type Agent struct{}

// New returns the agent.
func New() *Agent { return &Agent{} }

// Info implements agent.Agent. Calls that the program rejects and requests that it repeats are not
// all shown in its streams.
func (*Agent) Info() agent.Info {
	return agent.Info{
		ID:          agentID,
		Title:       "Codex",
		InstallHint: installHint,
		LoginHint:   "set CODEX_API_KEY or OPENAI_API_KEY, or run codex login",
		Protocols:   []string{"responses"},
		Credentials: []string{keyVariable, vendorVariable},
		Places:      places(),
		Managed:     managed,
		CallIDKey:   "callId",
		Capabilities: agent.Capabilities{
			Resume:              agent.Native,
			LongLived:           agent.Native,
			MCP:                 agent.Native,
			Usage:               agent.Native,
			MaxTurns:            agent.Enforced,
			SystemPromptAppend:  agent.Native,
			SystemPromptReplace: agent.Native,
			AllowedTools:        agent.Native,
			DisallowedTools:     agent.Native,
			Subscription:        agent.Native,
			Settings:            agent.Native,
			Effort:              agent.Native,
		},
	}
}

// Probe implements agent.Agent.
func (*Agent) Probe(ctx context.Context, host agent.Host) (agent.Installation, error) {
	return findProgram(ctx, host)
}

// Check implements agent.Checker.
func (a *Agent) Check(cfg agent.Config) error {
	if _, err := restrict(cfg); err != nil {
		return err
	}
	if err := agent.RequireEffort(agentID, efforts, cfg.Effort); err != nil {
		return err
	}
	if err := priced(cfg, cfg.Model); err != nil {
		return err
	}
	_, err := chooseLogin(cfg)
	return err
}

// Start implements agent.Agent. The process starts with the first prompt.
func (a *Agent) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	cfg.Isolation.ImageHome = true // its own files are elsewhere
	if err := agent.Ready(ctx, a, &cfg); err != nil {
		return nil, err
	}
	login, err := chooseLogin(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Seat != nil {
		cfg.ModelURL = cfg.Seat.URL
	}
	project, err := readProject(cfg)
	if err != nil {
		return nil, err
	}
	files, err := prepare(cfg, login)
	if err != nil {
		return nil, err
	}
	if err := withoutPatches(ctx, cfg, files); err != nil {
		return nil, err
	}
	return newConversation(cfg, login, files, project), nil
}

// priced checks that a budget can be enforced. The program does not report its cost. A model that
// is not known yet, because the program chooses it, is checked when it is.
func priced(cfg agent.Config, model string) error {
	if model == "" && cfg.Prices != nil {
		return nil
	}
	return agent.RequirePrice(agentID, cfg, model)
}
