package builtin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// resultLimit is how much of a tool's result the model sees.
const resultLimit = 30_000

// conversation is one session of the agent.
type conversation struct {
	agent    *Agent
	cfg      agent.Config
	endpoint endpoint
	client   model.Client
	root     *os.Root
	tools    []tool
	servers  []*toolServer
	store    store

	id       string
	messages []model.Message
	promptID string // of the last prompt, where it was given under an id
	replies  int    // that the model gave to the last prompt
	started  bool
	broken   error // how this machine failed a tool
	// unsaved are results of calls that were interrupted. They are written to the file with the
	// next message.
	unsaved  []storedMessage
	project  *string // what it adds to the system prompt; nil before the first turn
	closing  sync.Once
	closeErr error
}

// turnState is the state of one prompt.
type turnState struct {
	begin   time.Time
	turns   int
	usage   session.TokenUsage
	cost    float64
	priced  bool
	subtype string
	text    string
	err     error
	status  *int
}

// ID implements agent.Session.
func (c *conversation) ID() string { return c.id }

// Close implements agent.Session.
func (c *conversation) Close() error {
	c.closing.Do(func() {
		for _, server := range c.servers {
			server.close()
		}
		c.closeErr = c.root.Close()
	})
	return c.closeErr
}

func (c *conversation) load() error {
	var err error
	c.messages, c.promptID, err = c.store.load(c.id)
	for _, m := range c.messages {
		c.count(m)
	}
	return err
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	return c.prompt(ctx, "", text)
}

func (c *conversation) prompt(ctx context.Context, id, text string) (agent.Result, error) {
	state := &turnState{begin: time.Now(), priced: true}
	c.announce()
	for len(c.messages) > 0 && wantsTools(c.messages[len(c.messages)-1]) {
		c.messages = c.messages[:len(c.messages)-1] // calls that will never be answered
	}
	c.promptID = id
	if err := c.keep(storedMessage{Message: model.UserText(text), PromptID: id}); err != nil {
		return agent.Result{}, err
	}
	c.work(ctx, state)
	return c.finish(ctx, state), nil
}

func (c *conversation) announce() {
	if c.cfg.Started != nil && !c.started {
		c.cfg.Started(agent.Started{
			Version:    buildVersion(),
			Protocol:   session.StreamDialectName,
			Model:      c.endpoint.model,
			KeyVisible: c.endpoint.hasKey() && !c.endpoint.throughGateway && c.cfg.Isolation.Exposes(),
		})
	}
	c.started = true
	event := initEvent{
		Type:           "system",
		Subtype:        "init",
		SessionID:      c.id,
		Cwd:            c.cfg.Dir,
		Model:          c.endpoint.model,
		Tools:          []string{},
		MCPServers:     []serverInfo{},
		PermissionMode: "bypassPermissions",
		Runtime:        string(c.agent.id()),
		Version:        buildVersion(),
		Timestamp:      c.timestamp(),
	}
	for _, t := range c.tools {
		event.Tools = append(event.Tools, t.name)
	}
	for _, server := range c.servers {
		event.MCPServers = append(event.MCPServers, serverInfo{Name: server.name, Status: "connected"})
	}
	c.emit(event)
}

// work talks to the model until it calls no more tools, or until something ends the prompt.
func (c *conversation) work(ctx context.Context, state *turnState) {
	for {
		reply, err := c.ask(ctx)
		c.account(state, reply)
		if err != nil {
			state.fail(err)
			return
		}
		c.show(reply)
		if state.err = c.say(model.Message{Role: model.Assistant, Blocks: reply.Blocks}); state.err != nil {
			state.subtype = resultExecution
			return
		}
		calls := reply.ToolCalls()
		if len(calls) == 0 {
			state.subtype, state.text = resultSuccess, reply.Text()
			return
		}
		if c.cfg.Consumed != nil {
			c.cfg.Consumed(state.tokenUsage())
		}
		if subtype := c.limitReached(ctx, state); subtype != "" {
			state.subtype = subtype
			c.unanswered(calls)
			return
		}
		if state.err = c.callTools(ctx, calls, false); state.err != nil {
			state.subtype = resultExecution
			return
		}
	}
}

// ask sends the conversation to the model, making room where it does not fit.
func (c *conversation) ask(ctx context.Context) (model.Response, error) {
	for {
		reply, err := c.client.Complete(ctx, model.Request{
			Model:       c.endpoint.model,
			System:      c.systemPrompt(),
			Messages:    c.messages,
			Tools:       declare(c.tools),
			Temperature: c.cfg.Temperature,
			Effort:      c.cfg.Effort,
		})
		if err == nil && len(reply.Blocks) == 0 && reply.Usage == (session.TokenUsage{}) {
			return reply, &model.Error{
				Kind: model.KindProtocol, Message: "the reply is empty, and nothing was consumed", RetryAfter: -1,
			}
		}
		if failure, ok := errors.AsType[*model.Error](err); !ok || failure.Kind != model.KindContextOverflow {
			return reply, err
		}
		shorter, dropped := makeRoom(c.messages)
		if dropped == 0 {
			return reply, err
		}
		c.messages = shorter
		c.emit(compactEvent{
			Type:      "system",
			Subtype:   "compact_boundary",
			Dropped:   dropped,
			SessionID: c.id,
		})
	}
}

func (c *conversation) account(state *turnState, reply model.Response) {
	if reply.ID == "" && reply.Usage == (session.TokenUsage{}) {
		return // no reply came
	}
	state.turns++
	reply.Usage.TotalTokens = reply.Usage.Total()
	state.usage.Add(reply.Usage)
	cost, known := c.cfg.Prices(c.endpoint.model, reply.Usage, time.Now().UnixMilli())
	state.priced = state.priced && known && reply.Usage.Prompt() > 0 // a reply without usage is not free
	state.cost += cost
}

func (c *conversation) limitReached(ctx context.Context, state *turnState) string {
	if c.cfg.MaxTurns > 0 && state.turns >= c.cfg.MaxTurns {
		return resultMaxTurns
	}
	if _, empty := errors.AsType[*gateway.BudgetError](context.Cause(ctx)); empty {
		return resultBudget
	}
	return ""
}

// callTools runs the calls of one reply in order and gives the model their results. Calls that an
// earlier process may have run already are repeated only where that does no harm.
func (c *conversation) callTools(ctx context.Context, calls []model.ToolCall, again bool) error {
	answer := model.Message{Role: model.User}
	for i, call := range calls {
		text, isError := c.call(ctx, c.located(call, i), again)
		if c.broken != nil {
			return c.broken
		}
		text = c.clip(strings.ToValidUTF8(text, "\uFFFD"), resultLimit)
		result := &model.ToolResult{CallID: call.ID, Text: text, IsError: isError}
		answer.Blocks = append(answer.Blocks, model.Block{Type: model.BlockToolResult, Result: result})
		c.emit(messageEvent{
			Type:      "user",
			SessionID: c.id,
			UUID:      rand.Text(),
			Timestamp: c.timestamp(),
			Message: message{Role: "user", Content: []block{{
				Type:      "tool_result",
				ToolUseID: call.ID,
				Content:   &text,
				IsError:   &isError,
			}}},
		})
	}
	if err := ctx.Err(); err != nil {
		// A resumed conversation must find that these calls did not finish.
		c.messages = append(c.messages, answer)
		c.unsaved = append(c.unsaved, storedMessage{Message: answer})
		return err
	}
	return c.say(answer)
}

// located returns the i-th call of the last reply under an id that no other call for the same
// prompt has. The model's own id is not enough: some models give one id to several calls.
func (c *conversation) located(call model.ToolCall, i int) model.ToolCall {
	call.ID = fmt.Sprintf("%d.%d:%s", c.replies, i, call.ID)
	return call
}

func (c *conversation) call(ctx context.Context, call model.ToolCall, again bool) (text string, isError bool) {
	if call.InvalidInput != "" {
		return fmt.Sprintf("the input of %s is not a JSON object: %s", call.Name, c.clip(call.InvalidInput, 200)), true
	}
	for _, t := range c.tools {
		if t.name == call.Name {
			if again && !t.repeatable {
				return "interrupted: it is not known whether this ran; look before you run it again", true
			}
			text, err := t.run(ctx, call)
			if ctx.Err() == nil && notTheModels(err) {
				c.broken = fmt.Errorf("%s: %w", t.name, err)
			}
			if err != nil {
				return joinText(text, err.Error()), true
			}
			return text, false
		}
	}
	return fmt.Sprintf("there is no tool %q", call.Name), true
}

// notTheModels reports whether a tool failed because of this machine: nothing that the model can
// answer for, and no result for it.
func notTheModels(err error) bool {
	return errors.Is(err, sandbox.ErrBroken) || errors.Is(err, agent.ErrKilled) ||
		sandbox.MachineFailed(err) && !errors.Is(err, syscall.EROFS)
}

func joinText(text, more string) string {
	if text == "" {
		return more
	}
	return strings.TrimRight(text, "\n") + "\n" + more
}

// unanswered records that tool calls were not run, because a conversation that ends with open calls
// cannot be continued.
func (c *conversation) unanswered(calls []model.ToolCall) {
	answer := model.Message{Role: model.User}
	for _, call := range calls {
		result := &model.ToolResult{
			CallID: call.ID, Text: "not run: the limit of this session was reached",
			IsError: true,
		}
		answer.Blocks = append(answer.Blocks, model.Block{Type: model.BlockToolResult, Result: result})
	}
	_ = c.say(answer) // only a later resume would miss it
}

// say adds a message to the conversation and to its file.
func (c *conversation) say(m model.Message) error { return c.keep(storedMessage{Message: m}) }

func (c *conversation) keep(m storedMessage) error {
	c.messages = append(c.messages, m.Message)
	c.count(m.Message)
	kept := append(c.unsaved, m) //nolint:gocritic // the old list is not used again
	c.unsaved = nil
	return c.store.append(c.id, kept...)
}

// count counts a message that was added to the conversation.
func (c *conversation) count(m model.Message) {
	switch {
	case m.Role == model.Assistant:
		c.replies++
	case !hasResults(m):
		c.replies = 0
	}
}

func (c *conversation) show(reply model.Response) {
	u := usageJSON(reply.Usage)
	c.emit(messageEvent{
		Type:      "assistant",
		SessionID: c.id,
		UUID:      rand.Text(),
		Timestamp: c.timestamp(),
		Message: message{
			ID:         reply.ID,
			Role:       "assistant",
			Model:      c.endpoint.model,
			Content:    blocksOf(reply.Blocks),
			StopReason: string(reply.StopReason),
			Usage:      &u,
		},
	})
}

func (c *conversation) onRetry(info model.RetryInfo) {
	event := retryEvent{
		Type:         "system",
		Subtype:      "api_retry",
		Attempt:      info.Attempt,
		MaxRetries:   info.MaxRetries,
		RetryDelayMs: info.Delay.Milliseconds(),
		Error:        string(info.Err.Kind),
		SessionID:    c.id,
	}
	if info.Err.Status != 0 {
		event.ErrorStatus = &info.Err.Status
	}
	c.emit(event)
}

func (c *conversation) emit(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		return // our own structs always marshal
	}
	c.cfg.Events(line)
}

func (c *conversation) timestamp() string {
	return time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
}
