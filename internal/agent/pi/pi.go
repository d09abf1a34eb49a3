// Package pi runs the pi coding agent.
//
// For a single prompt it starts `pi --mode json -p` with the prompt on standard input. For several
// it keeps one process and speaks `--mode rpc`, in which a second prompt costs milliseconds and an
// abort is clean. Everything that the program keeps (configuration, sessions, temporary files) is
// in the session's own home, and nothing of the user's home or above the working directory is read.
// Of the working directory it reads what the table of places says: instructions, skills and prompts
// with context project, and extensions where programs of the project may run. It never reads
// .pi/settings.json of the project, whose settings would win over ours.
//
// The program has no MCP and no list of forbidden tools. It gets both from an extension that is
// part of this package (bridge.ts). It has no limits either: turns and budget are counted here, and
// the extension stops the program when its turns are used up. Its exit code means nothing; the last
// answer of the model, after all attempts, decides.
package pi

import (
	"context"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

// agentID is the agent's name in the registry.
const agentID session.AgentID = "pi-agent"

const (
	installHint = "npm install -g @mariozechner/pi-coding-agent"
	loginHint   = "set the key of your model's vendor, such as ANTHROPIC_API_KEY or OPENAI_API_KEY"
)

// Agent is the pi coding agent.
type Agent struct{}

// New returns the agent.
func New() *Agent { return &Agent{} }

// Info implements agent.Agent.
func (*Agent) Info() agent.Info {
	return agent.Info{
		ID:          agentID,
		Title:       "pi",
		InstallHint: installHint,
		LoginHint:   loginHint,
		Protocols:   protocols,
		Credentials: credentials(),
		Places:      places,
		CallIDKey:   "pi/toolCallId", // as the bridge sends it
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
			Settings:            agent.Native,
			Effort:              agent.Native,
			ShowsRetries:        agent.Native,
			ShowsFailedCalls:    agent.Native,
		},
	}
}

// Dialects implements agent.Agent.
func (*Agent) Dialects() []session.Dialect {
	return []session.Dialect{jsonDialect(), rpcDialect(), diskDialect()}
}

// Probe implements agent.Agent.
func (*Agent) Probe(ctx context.Context, host agent.Host) (agent.Installation, error) {
	return program().Find(ctx, host)
}

func program() agent.Program {
	return agent.Program{
		Agent:     agentID,
		Name:      "pi",
		Hint:      installHint,
		Oldest:    [2]int{0, 70},
		ReadPaths: readPaths,
		Login:     loginOf,
	}
}

// loginOf says what credentials the caller has.
func loginOf(environ []string) string {
	if len(allKeys(environ)) == 0 {
		return ""
	}
	return agent.AuthAPIKey
}

// readPaths returns the packages that the program consists of, and the interpreter.
func readPaths(real string, environ []string) []string {
	return append(agent.PackagePaths(real), agent.InterpreterPaths(environ)...)
}

// efforts are the levels of thinking that the program knows.
var efforts = []string{"off", "minimal", "low", "medium", "high", "xhigh"}

// Check implements agent.Checker.
func (*Agent) Check(cfg agent.Config) error {
	if err := agent.RequireTools(agentID, ownTools, toolNames(cfg.AllowedTools)); err != nil {
		return err
	}
	if err := agent.RequireEffort(agentID, efforts, cfg.Effort); err != nil {
		return err
	}
	if _, err := settings(cfg); err != nil {
		return err
	}
	if cfg.ModelURL != "" { // with another endpoint the program does not know prices
		if err := agent.RequirePrice(agentID, cfg, cfg.Model); err != nil {
			return err
		}
	}
	_, err := chooseEndpoint(cfg)
	return err
}

// Start implements agent.Agent. The process starts with the first prompt.
func (a *Agent) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	cfg.Isolation.ImageHome = true // its own files are elsewhere
	if err := agent.Ready(ctx, a, &cfg); err != nil {
		return nil, err
	}
	endpoint, err := chooseEndpoint(cfg)
	if err != nil {
		return nil, err
	}
	files, err := prepare(cfg, endpoint)
	if err != nil {
		return nil, err
	}
	if cfg.Resume != "" {
		if err := files.canResume(cfg.Resume, cfg.Dir); err != nil {
			return nil, err
		}
	}
	return newConversation(cfg, endpoint, files), nil
}
