// Package fourth runs a program that nobody has heard of. It is what a new agent is made of: how to find and start it, and how to read its events.
package fourth

import (
	"context"
	"encoding/json"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// ID is the agent's name in the registry.
const ID session.AgentID = "fourth"

const (
	keyVariable = "FOURTH_KEY"
	installHint = "make fourth"
)

// Agent is the program.
type Agent struct{}

// New returns the agent.
func New() *Agent { return &Agent{} }

// Info implements agent.Agent.
func (*Agent) Info() agent.Info {
	return agent.Info{
		ID: ID, Title: "Fourth", InstallHint: installHint, LoginHint: "set " + keyVariable, Credentials: []string{keyVariable},
		Capabilities: agent.Capabilities{MaxTurns: agent.Enforced},
	}
}

// Probe implements agent.Agent.
func (*Agent) Probe(ctx context.Context, host agent.Host) (agent.Installation, error) {
	found, err := agent.Program{Agent: ID, Name: "fourth", Hint: installHint}.Find(ctx, host)
	if agent.Getenv(host.Environ, keyVariable) != "" {
		found.Login = agent.AuthAPIKey
	}
	return found, err
}

// Dialects implements agent.Agent.
func (*Agent) Dialects() []session.Dialect { return []session.Dialect{dialect()} }

func dialect() session.Dialect {
	return session.Dialect{Name: "fourth-lines", Agent: ID, New: func() session.Decoder { return decoder{} }, Recognise: func(event []byte) bool {
		e, ok := parse(event)
		return ok && e.Fourth != ""
	}}
}

type event struct {
	Fourth string `json:"fourth"`
	ID     string `json:"id"`
	Text   string `json:"text"`
}

func parse(line []byte) (e event, ok bool) { return e, json.Unmarshal(line, &e) == nil }

type decoder struct{}

// Decode implements session.Decoder.
func (decoder) Decode(line []byte, at session.Stamp, to *session.Fold) {
	e, ok := parse(line)
	origin := session.Origin{Stamp: at}
	switch {
	case !ok:
		to.ParseError()
	case e.Fourth == "hello":
		to.Identify(session.Identity{SessionID: e.ID})
	case e.Fourth == "says":
		to.Message(origin, "assistant", e.Text, "")
	case e.Fourth == "end":
		to.Final(origin, session.Final{Outcome: session.OutcomeSuccess, Text: e.Text})
	default:
		to.Unknown()
	}
}

// Start implements agent.Agent.
func (a *Agent) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	if err := agent.Ready(ctx, a, &cfg); err != nil {
		return nil, err
	}
	started := agent.Started{KeyVisible: true}
	shared := agent.ConversationConfig{Agent: ID, Config: cfg, Dialect: dialect(), Started: started, EnforceTurns: true}
	return &conversation{agent.NewConversation(shared), cfg}, nil
}

type conversation struct {
	*agent.Conversation
	cfg agent.Config
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: c.cfg.Environ, Home: c.cfg.Home, TmpDir: c.cfg.Home})
	env.Allow(c.cfg.Environ, keyVariable)
	env.Assign(c.cfg.ExtraEnv...)
	return c.RunOnce(ctx, agent.Command{Argv: []string{c.cfg.Installation.Path}, Env: env.List(), Stdin: text})
}
