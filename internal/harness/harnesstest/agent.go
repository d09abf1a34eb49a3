// Package harnesstest makes agents out of Go functions: for demonstrations, for tests, and for
// participants that need no model. A function is called once per turn with what is in the
// participant's inbox, and acts through the session's tools.
//
//	query := func(cfg harness.AgentConfig) (agent.Agent, error) {
//		return harnesstest.New(cfg, func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
//			return "done", turn.Announce(ctx, "hello")
//		}), nil
//	}
package harnesstest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/session"
)

// agentID is the id that such an agent would have in the registry.
const agentID session.AgentID = "inprocess"

// Turn is one prompt to the function.
type Turn struct {
	// Prompt is the inbox as a model sees it, and Messages are the same messages as values.
	Prompt   string
	Messages []harness.Message
	// Number counts the turns of this participant from 1.
	Number int

	cfg harness.AgentConfig
	out func([]byte)
}

// Func carries out a participant's turn. What it returns is the turn's final text; an error means
// that the agent failed.
type Func func(ctx context.Context, turn *Turn) (string, error)

// Call uses a tool of the session.
func (t *Turn) Call(ctx context.Context, tool string, arguments any) (harness.ToolResult, error) {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		return harness.ToolResult{}, fmt.Errorf("arguments of %s: %w", tool, err)
	}
	return t.cfg.Dispatcher.Call(ctx, t.cfg.Name, tool, encoded)
}

// Ask puts a question to a participant, or, if to is empty, to the default addressees of Ask. It
// returns the ids of the asks.
func (t *Turn) Ask(ctx context.Context, to, question string) ([]int64, error) {
	arguments := map[string]string{"question": question}
	if to != "" {
		arguments["to"] = to
	}
	text, err := t.must(ctx, "Ask", arguments)
	if err != nil {
		return nil, err
	}
	var asked struct {
		AskIDs []int64 `json:"askIds"`
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil {
		return nil, fmt.Errorf("result of Ask: %w", err)
	}
	return asked.AskIDs, nil
}

// Answer answers an ask.
func (t *Turn) Answer(ctx context.Context, askID int64, message string) error {
	_, err := t.must(ctx, "Answer", map[string]any{"askId": askID, "message": message})
	return err
}

// Announce sends a message to everybody else.
func (t *Turn) Announce(ctx context.Context, message string) error {
	_, err := t.must(ctx, "Announce", map[string]string{"message": message})
	return err
}

// must uses a tool and makes its refusal an error.
func (t *Turn) must(ctx context.Context, tool string, arguments any) (string, error) {
	result, err := t.Call(ctx, tool, arguments)
	if err == nil && result.IsError {
		err = fmt.Errorf("%s was refused: %s", tool, result.Text)
	}
	return result.Text, err
}

// Say writes a line to the participant's lane of the trace.
func (t *Turn) Say(text string) {
	line, _ := json.Marshal(map[string]any{ // strings always marshal
		"type": "assistant", "message": map[string]any{
			"role":    "assistant",
			"content": []any{map[string]string{"type": "text", "text": text}},
		},
	})
	t.out(line)
}

// New returns an agent that plays the given member of a session by calling a function.
func New(cfg harness.AgentConfig, play Func) agent.Agent { return &player{cfg: cfg, play: play} }

type player struct {
	cfg  harness.AgentConfig
	play Func
}

// delivered returns the messages of the turn; an advisor has none.
func (p *player) delivered() []harness.Message {
	if p.cfg.Dispatcher == nil {
		return nil
	}
	return p.cfg.Dispatcher.Delivered(p.cfg.Name)
}

func (p *player) Info() agent.Info {
	return agent.Info{ID: agentID, Title: "Go function", Capabilities: agent.Capabilities{LongLived: agent.Native}}
}

func (p *player) Probe(context.Context, agent.Host) (agent.Installation, error) {
	return agent.Installation{Version: "1"}, nil
}

func (p *player) Dialects() []session.Dialect { return nil }

func (p *player) Start(_ context.Context, cfg agent.Config) (agent.Session, error) {
	return &conversation{player: p, events: cfg.Events}, nil
}

type conversation struct {
	player *player
	events func([]byte)
	turns  int
}

func (c *conversation) ID() string   { return "" }
func (c *conversation) Close() error { return nil }

func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	c.turns++
	answer, err := c.player.play(ctx, &Turn{
		Prompt:   text,
		Messages: c.player.delivered(),
		Number:   c.turns,
		cfg:      c.player.cfg,
		out:      c.events,
	})
	if err != nil {
		return agent.Result{Outcome: session.OutcomeError, Err: err, Aborted: ctx.Err() != nil}, nil
	}
	return agent.Result{
		Success: true,
		Outcome: session.OutcomeSuccess,
		Text:    answer,
		Turns:   1,
	}, nil
}
