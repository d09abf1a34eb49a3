package http

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/agent/events"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

// Agent is a deployed agent.
type Agent struct{ entry Entry }

// New returns the agent of a valid entry.
func New(entry Entry) *Agent { return &Agent{entry: entry} }

// Schemes returns the prefixes that turn an address into an agent without configuration: it is sent
// {"prompt":…,"session":…} and answers {"answer":…,"session":…}.
func Schemes() []agent.Scheme {
	scheme := func(prefix string) agent.Scheme {
		return agent.Scheme{
			Prefix:   prefix,
			Usage:    prefix + "://HOST/PATH",
			Dialects: []session.Dialect{events.Dialect()},
			New: func(rest string) (agent.Agent, error) {
				entry := Entry{
					ID:      prefix + ":" + rest,
					URL:     prefix + ":" + rest,
					Session: "session",
				}
				if _, query, found := strings.Cut(rest, "?"); found && query != "" {
					return New(entry), errors.New("an address on the command line stays in the trace, and its query " +
						"may hold a secret; describe the agent in agents.yaml, with secrets in headers as ${NAME}")
				}
				return New(entry), entry.Validate()
			},
		}
	}
	return []agent.Scheme{scheme("http"), scheme("https")}
}

func (a *Agent) id() session.AgentID { return session.AgentID(a.entry.ID) }

// Info implements agent.Agent.
func (a *Agent) Info() agent.Info {
	e := a.entry
	login := "no credentials are needed"
	if names := e.variables(); len(names) > 0 {
		login = "set " + strings.Join(names, " and ")
	}
	info := agent.Info{
		ID:          a.id(),
		Title:       cmp.Or(e.Title, "agent at "+e.URL),
		Opaque:      true,
		InstallHint: cmp.Or(e.Install, "nothing: it is deployed"),
		LoginHint:   cmp.Or(e.Login, login),
		Credentials: e.variables(),
		Capabilities: agent.Capabilities{
			MaxTurns:     agent.Native, // a prompt is one request
			ShowsRetries: agent.Native,
		},
	}
	if e.Session != "" && e.has(wordSession) {
		info.Capabilities.Resume, info.Capabilities.LongLived = agent.Native, agent.Native
	}
	if e.has(wordSystem) {
		info.Capabilities.SystemPromptAppend = agent.Native
	}
	if e.Usage.Input != "" && e.Usage.Output != "" {
		info.Capabilities.Usage = agent.Native
	}
	return info
}

// Dialects implements agent.Agent.
func (*Agent) Dialects() []session.Dialect { return []session.Dialect{events.Dialect()} }

// Probe implements agent.Agent. Nothing is sent: the version is a digest of the entry, because the
// deployed code cannot be seen from here.
func (a *Agent) Probe(_ context.Context, host agent.Host) (agent.Installation, error) {
	described, err := json.Marshal(a.entry)
	if err != nil {
		return agent.Installation{}, fmt.Errorf("describe agent %s: %w", a.id(), err)
	}
	sum := sha256.Sum256(described)
	found := agent.Installation{Version: hex.EncodeToString(sum[:])[:12]}
	if a.entry.missing(host.Environ) == "" {
		found.Login = agent.AuthAPIKey
	}
	return found, nil
}

// Check implements agent.Checker.
func (a *Agent) Check(cfg agent.Config) error {
	if name := a.entry.missing(cfg.Environ); name != "" {
		return &agent.AuthError{Reason: fmt.Sprintf("agent %s needs %s, which is not set", a.id(), name)}
	}
	if a.entry.has(wordModel) && cfg.Model == "" {
		return agent.Refuse(a.id(), "agent %s needs the name of a model: its request has %s", a.id(), wordModel)
	}
	return nil
}

// Start implements agent.Agent. A request is sent with every prompt.
func (a *Agent) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	if err := agent.Ready(ctx, a, &cfg); err != nil {
		return nil, err
	}
	return newConversation(a.entry, cfg), nil
}
