// Package acp runs agents that speak the Agent Client Protocol: JSON-RPC, one message a line, on
// the standard input and output of the agent's program.
//
// One adapter serves all of them. What differs between agents is an Entry: how the program is
// started and configured, and what is known about its stream. The entries that fit knows are in
// table.go; agents.yaml adds others, and `acp:COMMAND` needs none.
//
// The protocol leaves much open, so nothing is taken on trust. A turn that ends well may have
// failed, token counts mean different things in different agents or are missing, and a tool call
// may be announced late, twice or never. The entry's rules say what each agent means; the decoder
// reads the stream by them. Everything that the agent may ask of its client is declined, except
// permissions, which are answered by policy, and files of the workspace where the entry says that
// the agent cannot do without.
//
// The trace has the agent's lines as they came. Messages to the agent are between them as
// {"dir":"out","msg":…}, without prompts and credentials.
package acp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

// Agent is one that speaks the protocol.
type Agent struct{ entry Entry }

// New returns the agent of an entry, which must be valid.
func New(entry Entry) *Agent { return &Agent{entry: entry} }

// Agents returns the agents of the table.
func Agents() []agent.Agent {
	agents := make([]agent.Agent, len(table))
	for i, entry := range table {
		agents[i] = New(entry)
	}
	return agents
}

// Scheme makes an agent from a command line: acp:my-agent --stdio.
func Scheme() agent.Scheme {
	return agent.Scheme{
		Prefix:   "acp",
		Usage:    "acp:COMMAND [ARGUMENT...]",
		Dialects: []session.Dialect{dialect(rules{})},
		New: func(rest string) (agent.Agent, error) {
			words, err := agent.Words(rest)
			if err != nil {
				return nil, err
			}
			if len(words) == 0 {
				return nil, errors.New("no command given")
			}
			return New(adHoc("acp:"+rest, words)), nil
		},
	}
}

// Entry returns what is known about the agent.
func (a *Agent) Entry() Entry { return a.entry }

// Info implements agent.Agent.
func (a *Agent) Info() agent.Info {
	e := a.entry
	info := agent.Info{
		ID:          session.AgentID(e.ID),
		Title:       e.title(),
		Opaque:      true,
		InstallHint: e.installHint(),
		LoginHint:   e.Login,
		Protocols:   slices.Clone(e.Protocols),
		Credentials: slices.Clone(e.Keys),
		Places:      e.Places,
		Capabilities: agent.Capabilities{
			LongLived: agent.Native,
			MCP:       agent.Native,
			MaxTurns:  agent.Enforced,
		},
	}
	c := &info.Capabilities
	if e.Resume != "" {
		c.Resume = agent.Native
	}
	if e.mentions("SystemPrompt") {
		c.SystemPromptAppend = agent.Native
	}
	if e.AsksForAll {
		c.AllowedTools, c.DisallowedTools = agent.Enforced, agent.Enforced
	}
	switch e.Usage {
	case "", usageNone, usageLastCall:
	default:
		c.Usage = agent.Native
	}
	return info
}

// Dialects implements agent.Agent.
func (a *Agent) Dialects() []session.Dialect {
	return []session.Dialect{dialect(rules{})}
}

// Probe implements agent.Agent.
func (a *Agent) Probe(ctx context.Context, host agent.Host) (agent.Installation, error) {
	if a.entry.Oldest == [2]int{} {
		return a.locate(host)
	}
	return agent.Program{
		Agent:     session.AgentID(a.entry.ID),
		Name:      a.entry.Command,
		Hint:      a.entry.installHint(),
		Oldest:    a.entry.Oldest,
		ReadPaths: readPaths,
		Login:     a.login,
	}.Find(ctx, host)
}

// locate finds a program that need not report its version: it may be any script.
func (a *Agent) locate(host agent.Host) (agent.Installation, error) {
	path := a.entry.Command
	if !strings.ContainsRune(path, filepath.Separator) {
		path = agent.LookPath(host.Environ, path)
	}
	if path == "" {
		return agent.Installation{}, &agent.NotFoundError{
			Agent: session.AgentID(a.entry.ID),
			Hint:  a.entry.installHint(),
		}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return agent.Installation{}, fmt.Errorf("find agent %s: %w", a.entry.ID, err)
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return agent.Installation{}, fmt.Errorf("find agent %s: %w", a.entry.ID, err)
	}
	return agent.Installation{
		Path:      absolute,
		ReadPaths: readPaths(real, host.Environ),
		Login:     a.login(host.Environ),
		Scripts: slices.DeleteFunc(slices.Clone(a.entry.Args),
			func(word string) bool { return !agent.IsScript(word) }),
	}, nil
}

// login returns the kind of credentials that the caller has.
func (a *Agent) login(environ []string) string {
	if a.entry.key(environ) != "" {
		return agent.AuthAPIKey
	}
	return ""
}

// readPaths returns the packages that a program of npm consists of and the interpreter; otherwise
// the program itself.
func readPaths(real string, environ []string) []string {
	paths := agent.PackagePaths(real)
	if paths[0] != real {
		paths = append(paths, agent.InterpreterPaths(environ)...)
	}
	return paths
}

// Check implements agent.Checker.
func (a *Agent) Check(cfg agent.Config) error {
	id := session.AgentID(a.entry.ID)
	if cfg.Auth != "" && cfg.Auth != agent.AuthAPIKey {
		return agent.Refuse(id, "unknown --auth %q; agent %s runs on keys only", cfg.Auth, id)
	}
	if cfg.ModelURL != "" && !a.entry.mentions("URL") {
		return agent.Refuse(id, "agent %s cannot be given another model endpoint: nothing in its entry uses {{.URL}}",
			id)
	}
	if cfg.ModelURL != "" && cfg.Model == "" && a.entry.mentions("Model") {
		return agent.Refuse(id, "agent %s needs a model to use with another endpoint; set --model with --model-url",
			id)
	}
	if err := checkTools(a.entry, cfg); err != nil {
		return err
	}
	// An agent without a known login may have its own.
	if cfg.ModelURL == "" && a.entry.Login != "" && len(a.entry.Keys) > 0 && a.login(cfg.Environ) == "" {
		return fmt.Errorf("agent %s has no key; set %s, or set --model-url", id, strings.Join(a.entry.Keys, " or "))
	}
	if cfg.Model == "" && agent.WithoutGateway(a, cfg) == "" {
		return nil // the gateway sees which model the agent has chosen
	}
	return agent.RequirePrice(id, cfg, cfg.Model)
}

// Start implements agent.Agent. The process starts with the first prompt.
func (a *Agent) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	if err := agent.Ready(ctx, a, &cfg); err != nil {
		return nil, err
	}
	if err := checkProject(a.entry, cfg); err != nil {
		return nil, err
	}
	setup, err := prepare(a.entry, cfg)
	if err != nil {
		return nil, fmt.Errorf("start agent %s: %w", a.entry.ID, err)
	}
	return newConversation(a.entry, cfg, setup), nil
}
