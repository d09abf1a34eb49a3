package pi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// conversation is one session with the program.
type conversation struct {
	*agent.Conversation
	cfg      agent.Config
	endpoint endpoint
	files    sessionFiles

	requests atomic.Int64
	greeted  atomic.Bool // the program has answered our first request
	idle     idleState
}

func newConversation(cfg agent.Config, e endpoint, p sessionFiles) *conversation {
	c := &conversation{cfg: cfg, endpoint: e, files: p}
	dialect := jsonDialect()
	if !cfg.OneShot {
		dialect = rpcDialect()
		dialect.New = func() session.Decoder { return &idleDecoder{decoder: &decoder{}, idle: &c.idle} }
	}
	c.Conversation = agent.NewConversation(agent.ConversationConfig{
		Agent:        agentID,
		Config:       cfg,
		Dialect:      dialect,
		Observe:      c.observe,
		Settle:       c.settle,
		EnforceTurns: true,
		Started:      agent.Started{Auth: agent.AuthAPIKey, KeyVisible: len(e.keys) > 0 && e.gateway == ""},
	})
	return c
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	result, err := c.InTurn(func() (agent.Result, error) {
		switch {
		case strings.TrimSpace(text) == "":
			return agent.Result{}, errors.New("the prompt is empty")
		case c.cfg.OneShot:
			return c.RunOnce(ctx, agent.Command{Argv: c.argv(), Env: c.environ(), Stdin: text})
		}
		return c.converse(ctx, text)
	})
	if err == nil {
		result.Output.DiskJSONLPath = c.files.sessionFile(result.SessionID)
	}
	return result, err
}

// argv continues the conversation if there is one on record: the program writes nothing before the
// model's first answer.
func (c *conversation) argv() []string {
	return arguments{
		path:     c.cfg.Installation.Path,
		cfg:      c.cfg,
		endpoint: c.endpoint,
		files:    c.files,
		session:  c.files.sessionFile(c.ID()),
	}.argv()
}

func (c *conversation) environ() []string { return environment(c.cfg, c.endpoint, c.files) }

// converse gives a prompt to the long-lived process, starting it if it does not run.
func (c *conversation) converse(ctx context.Context, text string) (agent.Result, error) {
	if !c.Alive() {
		c.greeted.Store(false)
		c.idle.reset()
		if err := c.Open(ctx, agent.Command{Argv: c.argv(), Env: c.environ()}); err != nil {
			return agent.Result{}, err
		}
		// the stream does not begin with the session's id, so it is asked for
		if err := c.request("get_state", nil); err != nil {
			return agent.Result{}, err
		}
		waiting, cancel := context.WithTimeout(ctx, agent.StartTimeout)
		defer cancel()
		if err := c.Until(waiting, c.greeted.Load); err != nil && ctx.Err() == nil && c.Alive() {
			return agent.Result{}, fmt.Errorf("no answer to the first request: %w", err)
		}
	}
	say := func() error { return c.request("prompt", map[string]any{"message": text}) }
	return c.Turn(ctx, say, func() error { return c.request("abort", nil) })
}

// request sends a command.
func (c *conversation) request(command string, fields map[string]any) error {
	message := map[string]any{"id": "fit-" + strconv.FormatInt(c.requests.Add(1), 10), "type": command}
	maps.Copy(message, fields)
	return c.Send(message)
}

// observe follows the protocol.
func (c *conversation) observe(event []byte) error {
	if c.cfg.OneShot {
		return nil
	}
	v, ok := jsontape.Parse(event)
	if !ok {
		return nil // the decoder counts it
	}
	switch v.TextOf("type") {
	case "response":
		c.greeted.Store(true)
		c.idle.answered(v.TextOf("id"))
	case "agent_end":
		return c.Send(map[string]any{"id": c.idle.question(), "type": "get_state"})
	case "extension_ui_request": // nobody can answer, and the extension must not hang
		switch v.TextOf("method") {
		case "select", "confirm", "input", "editor":
			return c.Send(map[string]any{"type": "extension_ui_response", "id": v.TextOf("id"), "cancelled": true})
		}
	}
	return nil
}

// settle says how long to wait after the end of an attempt. A process for one prompt ends by itself
// when there is nothing left to try. The long-lived one is asked something after every end: it
// announces the next attempt, or that it shortens the conversation, before it answers.
func (c *conversation) settle(session.Final) time.Duration {
	if c.cfg.OneShot || !c.idle.settled() {
		return settleTimeout
	}
	return 0
}

// settleTimeout is how long it may remain unclear whether a program has finished.
const settleTimeout = 30 * time.Second

// idleState keeps track of whether the program is idle after the end of an attempt.
type idleState struct {
	mu         sync.Mutex
	ends       int // attempts that have ended
	asked      int // the last end after which we have asked
	confirmed  int // the last end that was confirmed by an answer
	compacting bool
}

const questionPrefix = "fit-end-"

func (r *idleState) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends, r.asked, r.confirmed, r.compacting = 0, 0, 0, false
}

// note notes an event when it is decoded, so that its effect is not seen earlier.
func (r *idleState) note(event []byte) {
	v, _ := jsontape.Parse(event)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch v.TextOf("type") {
	case "agent_end":
		r.ends++
	case "compaction_start":
		r.compacting = true
	case "compaction_end":
		r.compacting = false
	}
}

// question returns the id of a request that is made after the last end.
func (r *idleState) question() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = r.ends
	return questionPrefix + strconv.Itoa(r.asked)
}

func (r *idleState) answered(id string) {
	number, err := strconv.Atoi(strings.TrimPrefix(id, questionPrefix))
	if err != nil || !strings.HasPrefix(id, questionPrefix) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmed = max(r.confirmed, min(number, r.asked))
}

func (r *idleState) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.confirmed == r.ends && !r.compacting
}

// idleDecoder passes every event to an idleState.
type idleDecoder struct {
	*decoder
	idle *idleState
}

// Decode implements session.Decoder.
func (d *idleDecoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	d.idle.note(event)
	d.decoder.Decode(event, at, to)
}
