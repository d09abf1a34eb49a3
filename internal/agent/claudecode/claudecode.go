// Package claudecode runs Claude Code.
//
// For a single prompt it starts `claude -p` with the prompt on standard input. For several it keeps
// one process and speaks the streamed-input protocol with its control messages, in which a second
// prompt costs milliseconds and an interrupt is clean. Everything that the program keeps
// (configuration, sessions, temporary files) is in the session's own home, and nothing of the
// user's is read.
//
// With context project the program reads what the working directory brings: CLAUDE.md, skills,
// sub-agents, commands and settings. Settings of the command line win over the latter in everything
// that a project never decides (endpoint, credentials, proxy, permissions, model, telemetry), and
// switch the project's hooks, tool servers and other programs off unless they may run; then its
// hooks are events of the stream. What lies above the working directory is excluded by path, or
// switched off by name. With context none it reads nothing of the project.
package claudecode

import (
	"context"
	"path/filepath"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

// agentID is the agent's name in the registry.
const agentID session.AgentID = "claude-code"

const installHint = "npm install -g @anthropic-ai/claude-code"

// Agent is Claude Code.
type Agent struct{}

// New returns the agent.
func New() *Agent { return &Agent{} }

// Info implements agent.Agent.
func (*Agent) Info() agent.Info {
	return agent.Info{
		ID:          agentID,
		Title:       "Claude Code",
		InstallHint: installHint,
		LoginHint:   "set ANTHROPIC_API_KEY, or run claude and log in",
		Protocols:   []string{"anthropic"},
		Credentials: []string{keyVariable, tokenVariable, oauthVariable},
		Places:      places(),
		Managed:     managed,
		CallIDKey:   "claudecode/toolUseId",
		Capabilities: agent.Capabilities{
			Resume:              agent.Native,
			LongLived:           agent.Native,
			MCP:                 agent.Native,
			Usage:               agent.Native,
			MaxTurns:            agent.Native,
			SystemPromptAppend:  agent.Native,
			SystemPromptReplace: agent.Native,
			AllowedTools:        agent.Native,
			DisallowedTools:     agent.Native,
			Subscription:        agent.Native,
			Settings:            agent.Native,
			Effort:              agent.Native,
			ShowsRetries:        agent.Native,
			ShowsFailedCalls:    agent.Native,
		},
	}
}

// Dialects implements agent.Agent.
func (*Agent) Dialects() []session.Dialect {
	return []session.Dialect{session.StreamDialect(agentID), diskDialect()}
}

// Probe implements agent.Agent.
func (*Agent) Probe(ctx context.Context, host agent.Host) (agent.Installation, error) {
	return program().Find(ctx, host)
}

func program() agent.Program {
	return agent.Program{
		Agent:     agentID,
		Name:      "claude",
		Hint:      installHint,
		Oldest:    [2]int{2, 1},
		ReadPaths: readPaths,
		Login:     loginOf,
	}
}

// readPaths returns the directories of the package and of the packages that npm puts beside it,
// which hold the program's native half.
func readPaths(real string, _ []string) []string {
	if scope := filepath.Dir(filepath.Dir(filepath.Dir(real))); filepath.Base(scope) == "@anthropic-ai" {
		return []string{scope}
	}
	return []string{real}
}

// Check implements agent.Checker.
func (*Agent) Check(cfg agent.Config) error {
	if err := agent.RequireTools(agentID, tools, cfg.AllowedTools); err != nil {
		return err
	}
	if err := agent.RequireEffort(agentID, efforts, cfg.Effort); err != nil {
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
	files, err := prepare(cfg, login)
	if err != nil {
		return nil, err
	}
	return newConversation(cfg, login, files), nil
}
