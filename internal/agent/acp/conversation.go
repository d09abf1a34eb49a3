package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// conversation is one session with an agent.
type conversation struct {
	*agent.Conversation
	entry    Entry
	cfg      agent.Config
	setup    setup
	requests agent.Requests[[]byte] // what we ask of the program, and its answers
	quiet    *silence

	toolsMu sync.Mutex
	tools   session.Recent[string] // the tools' own names by call

	promptMu sync.Mutex
	prompt   context.Context // of the prompt that runs; nil without one
}

func newConversation(e Entry, cfg agent.Config, made setup) *conversation {
	c := &conversation{
		entry: e,
		cfg:   cfg,
		setup: made,
		quiet: newSilence(e.silence()),
	}
	c.Conversation = agent.NewConversation(agent.ConversationConfig{
		Agent:        session.AgentID(e.ID),
		Config:       cfg,
		Dialect:      dialect(rulesOf(e)),
		Observe:      c.observe,
		EnforceTurns: true,
		Started:      agent.Started{Auth: agent.AuthAPIKey, KeyVisible: made.keyVisible},
	})
	return c
}

// protocolVersion is the version that we speak. Some agents answer 2 if asked for it, which is
// another protocol.
const protocolVersion = 1

// maxVersion is how much is shown of a version that is not a number.
const maxVersion = 40

// ErrSilent ends a prompt whose agent waits for its model forever.
var ErrSilent = errors.New("the agent is silent while it waits for its model")

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	return c.InTurn(func() (agent.Result, error) {
		if strings.TrimSpace(text) == "" {
			return agent.Result{}, errors.New("the prompt is empty")
		}
		return c.converse(ctx, text)
	})
}

// converse gives a prompt to the process, starting it if it does not run.
func (c *conversation) converse(ctx context.Context, text string) (agent.Result, error) {
	if !c.Alive() {
		if err := c.open(ctx); err != nil {
			return agent.Result{}, err
		}
	}
	bounded, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer c.begin(bounded)()
	say := func() error {
		c.quiet.start(func() { giveUp(ErrSilent) })
		return c.send(note{Msg: message{
			Version: "2.0",
			ID:      c.requests.Begin(false),
			Method:  "session/prompt",
			Params:  object{"sessionId": c.ID(), "prompt": []object{{"type": "text", "text": text}}},
		}}, "prompt")
	}
	defer c.quiet.stop()
	result, err := c.Turn(bounded, say, c.stop)
	if err == nil && result.Aborted && ctx.Err() == nil && errors.Is(context.Cause(bounded), ErrSilent) {
		result.Aborted, result.Outcome, result.Err = false, session.OutcomeProvider, c.silent()
	}
	return result, err
}

func (c *conversation) silent() error { return fmt.Errorf("%w for %v", ErrSilent, c.entry.silence()) }

// begin remembers the prompt that runs, until it is over.
func (c *conversation) begin(ctx context.Context) (over func()) {
	c.promptMu.Lock()
	defer c.promptMu.Unlock()
	c.prompt = ctx
	return func() {
		c.promptMu.Lock()
		defer c.promptMu.Unlock()
		c.prompt = nil
	}
}

// running returns the context of the prompt that runs; nil without one.
func (c *conversation) running() context.Context {
	c.promptMu.Lock()
	defer c.promptMu.Unlock()
	return c.prompt
}

// cancelled reports whether the prompt that runs is being cancelled. Some agents wait for the
// answer to an open request for permission before they stop.
func (c *conversation) cancelled() bool {
	ctx := c.running()
	return ctx != nil && ctx.Err() != nil
}

// stop asks the agent to cancel the prompt that runs.
func (c *conversation) stop() error {
	n := note{Msg: message{
		Version: "2.0",
		Method:  "session/cancel",
		Params:  object{"sessionId": c.ID()},
	}}
	if ctx := c.running(); ctx != nil && errors.Is(context.Cause(ctx), ErrSilent) {
		n.Reason = c.silent().Error()
	}
	return c.send(n)
}

// open starts the process and begins or resumes the conversation.
func (c *conversation) open(ctx context.Context) error {
	if err := c.Open(ctx, agent.Command{Argv: c.setup.argv, Env: c.setup.env, Dir: c.setup.dir}); err != nil {
		return err
	}
	if err := c.greet(ctx); err != nil {
		_ = c.Close() // a process that is not ready for prompts is useless
		if refused, ok := errors.AsType[*rpcError](err); ok && refused.code == codeAuthRequired {
			return &agent.AuthError{Reason: err.Error()}
		}
		return err
	}
	return nil
}

func (c *conversation) greet(ctx context.Context) error {
	hello, err := c.call(ctx, note{Rules: new(rulesOf(c.entry)), Msg: message{Method: "initialize", Params: object{
		"protocolVersion": protocolVersion,
		"clientInfo":      object{"name": "fit", "title": "fit", "version": "1"},
		"clientCapabilities": object{
			"fs":       object{"readTextFile": c.entry.ServeFiles, "writeTextFile": c.entry.ServeFiles},
			"terminal": false,
		},
	}}})
	if err != nil {
		return err
	}
	version := hello.Get("protocolVersion")
	if version.Kind() != jsontape.Number || version.Int64() != protocolVersion {
		return fmt.Errorf("the agent speaks version %s of the Agent Client Protocol; fit speaks version %d",
			cmp.Or(display.CutBytes(display.Line(string(version.Raw())), maxVersion), "unknown"), protocolVersion)
	}
	if c.entry.Authenticate != "" {
		params := object{"methodId": c.entry.Authenticate}
		if _, err := c.call(ctx, note{Msg: message{Method: "authenticate", Params: params}}); err != nil {
			return err
		}
	}
	opened, err := c.enter(ctx, hello.Get("agentCapabilities"))
	if err != nil {
		return err
	}
	if c.setup.mode != "" {
		params := object{"sessionId": c.ID(), "modeId": c.setup.mode}
		if _, err := c.call(ctx, note{Msg: message{Method: "session/set_mode", Params: params}}); err != nil {
			return err
		}
	}
	return c.chooseModel(ctx, opened)
}

// enter begins a session, or continues one.
func (c *conversation) enter(ctx context.Context, can jsontape.Value) (jsontape.Value, error) {
	servers := []object{}
	if !c.entry.mentions("MCPServers") {
		servers = mcpList(c.cfg.MCPServers)
	}
	params := object{"cwd": c.cfg.Dir, "mcpServers": servers}
	id := c.ID()
	if id == "" {
		opened, err := c.call(ctx, note{Msg: message{Method: "session/new", Params: params}}, "mcpServers")
		if err == nil && opened.TextOf("sessionId") == "" {
			err = errors.New("session/new: the agent gave the session no id")
		}
		return opened, err
	}
	method, able := "session/load", can.Get("loadSession").Bool()
	if c.entry.Resume == byResume {
		method, able = "session/resume", can.Path("sessionCapabilities", "resume").Exists()
	}
	if !able {
		return jsontape.Value{}, fmt.Errorf("%w: the agent has no %s", agent.ErrNoConversation, method)
	}
	params["sessionId"] = id
	opened, err := c.call(ctx, note{Msg: message{Method: method, Params: params}}, "mcpServers")
	if refused, ok := errors.AsType[*rpcError](err); ok && refused.code != codeAuthRequired {
		return opened, fmt.Errorf("%w: %w", agent.ErrNoConversation, err)
	}
	return opened, err
}

// chooseModel sets the model of a session, if the program was not started with it.
func (c *conversation) chooseModel(ctx context.Context, opened jsontape.Value) error {
	how := c.entry.SetModel
	if how == "" && !c.entry.mentions("Model") {
		how = offered(opened)
		if how == "" && c.cfg.Model != "" {
			return agent.Refuse(session.AgentID(c.entry.ID),
				"agent %s offers no choice of models; leave out --model", c.entry.ID)
		}
	}
	if c.cfg.Model == "" {
		return nil
	}
	var err error
	switch how {
	case setByOption:
		_, err = c.call(ctx, note{Msg: message{
			Method: "session/set_config_option",
			Params: object{"sessionId": c.ID(), "configId": "model", "value": c.cfg.Model},
		}})
	case setByMethod:
		_, err = c.call(ctx, note{Msg: message{
			Method: "session/set_model",
			Params: object{"sessionId": c.ID(), "modelId": c.cfg.Model},
		}})
	}
	return err
}

// offered returns how an agent lets its client choose a model. Several options may be about models;
// the right one has the id.
func offered(opened jsontape.Value) string {
	for option := range opened.Get("configOptions").Elements() {
		if option.TextOf("id") == "model" {
			return setByOption
		}
	}
	if opened.Get("models").Kind() == jsontape.Object {
		return setByMethod
	}
	return ""
}

// Close implements agent.Session.
func (c *conversation) Close() error {
	c.quiet.stop()
	return c.Conversation.Close()
}
