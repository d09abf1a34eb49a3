package codex

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsontape"
)

// client is our side of the app server's protocol: JSON-RPC, one message a line.
type client struct {
	requests agent.Requests[reply]

	mu        sync.Mutex
	turn      string // the prompt that runs
	interrupt bool   // it is to be stopped as soon as it has an id
}

// reply is the answer to a request.
type reply struct {
	err     error
	refused bool // the program answered, with an error
	model   string
}

type object = map[string]any

// converse gives a prompt to the long-lived process, starting it if it does not run.
func (c *conversation) converse(ctx context.Context, text string) (agent.Result, error) {
	if !c.Alive() {
		if err := c.open(ctx); err != nil {
			return agent.Result{}, err
		}
	}
	say := func() error {
		c.client.clear()
		return c.request("turn/start", object{
			"threadId": c.ID(), "input": []object{{"type": "text", "text": text}},
		})
	}
	return c.Turn(ctx, say, c.stop)
}

// open starts the process and begins or resumes the conversation.
func (c *conversation) open(ctx context.Context) error {
	if err := c.Open(ctx, agent.Command{Argv: c.arguments().server(), Env: c.environ()}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, agent.StartTimeout)
	defer cancel()
	if err := c.greet(ctx); err != nil {
		_ = c.Close() // a process that is not ready for prompts is useless
		return err
	}
	return nil
}

func (c *conversation) greet(ctx context.Context) error {
	_, err := c.call(ctx, "initialize", object{
		"clientInfo": object{"name": "fit", "title": "fit", "version": "1"},
		"capabilities": object{
			"experimentalApi": false, "requestAttestation": false,
			"optOutNotificationMethods": optOut(),
		},
	})
	if err != nil {
		return err
	}
	if err := c.Send(object{"method": "initialized"}); err != nil {
		return err
	}
	method, params := "thread/start", object{
		"cwd": c.cfg.Dir, "approvalPolicy": "never",
		"sandbox": "danger-full-access",
	}
	model, err := c.model(ctx)
	if err != nil {
		return err
	}
	if model != "" {
		params["model"] = model
	}
	overrides, err := c.project.overrides(c.cfg, c.files)
	if err != nil {
		return err
	}
	if len(overrides) > 0 {
		params["config"] = overrides
	}
	if id := c.ID(); id != "" {
		method, params["threadId"], params["excludeTurns"] = "thread/resume", id, true
	}
	started, err := c.call(ctx, method, params)
	if c.ID() != "" && started.refused {
		return fmt.Errorf("%w: %w", agent.ErrNoConversation, err)
	}
	if err != nil {
		return err
	}
	return priced(c.cfg, started.model)
}

// model returns the model to ask for; empty: the program decides. Where the project would decide,
// it is the program's default.
func (c *conversation) model(ctx context.Context) (string, error) {
	if c.cfg.Model != "" || !c.project.model {
		return c.cfg.Model, nil
	}
	listed, err := c.call(ctx, "model/list", object{})
	if err == nil && listed.model == "" {
		err = errors.New("the program does not say which model is its default; name one")
	}
	return listed.model, err
}

// optOut returns the notifications that we would only drop: deltas, and the whole diff of the work
// so far after every change.
func optOut() []string { return append([]string{"turn/diff/updated"}, deltaMethods...) }

// call sends a request and waits for its answer.
func (c *conversation) call(ctx context.Context, method string, params object) (reply, error) {
	id := c.client.requests.Begin(true)
	if err := c.Send(object{"id": id, "method": method, "params": params}); err != nil {
		return reply{}, err
	}
	var answer reply
	err := c.Until(ctx, func() (answered bool) {
		answer, answered = c.client.requests.Fetch(id)
		return answered
	})
	switch {
	case err != nil:
		return reply{}, fmt.Errorf("%s: %w", method, err)
	case answer.err != nil:
		return reply{refused: true}, fmt.Errorf("%s: %w", method, answer.err)
	}
	return answer, nil
}

// request sends a request whose answer is read from the stream.
func (c *conversation) request(method string, params object) error {
	return c.Send(object{"id": c.client.requests.Begin(false), "method": method, "params": params})
}

func (c *client) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn, c.interrupt = "", false
}

// stop interrupts the prompt that runs; one that has no id yet is interrupted when it gets it.
func (c *conversation) stop() error {
	c.client.mu.Lock()
	turn := c.client.turn
	c.client.interrupt = turn == ""
	c.client.mu.Unlock()
	if turn == "" {
		return nil
	}
	return c.interrupt(turn)
}

func (c *conversation) interrupt(turn string) error {
	return c.request("turn/interrupt", object{"threadId": c.ID(), "turnId": turn})
}

// observe follows the protocol: answers to our requests, the id of the prompt that runs, and
// questions of the program.
func (c *conversation) observe(event []byte) error {
	v, ok := jsontape.Parse(event)
	if !ok {
		return nil // the decoder counts it
	}
	switch method, asks := v.TextOf("method"), v.Get("id").Exists(); {
	case method == "" && asks:
		return c.answered(v)
	case method == "turn/started" && v.Get("params").TextOf("threadId") == c.ID():
		return c.began(strings.Clone(v.Path("params", "turn", "id").Text()))
	case method != "" && asks:
		return c.Send(answerTo(method, v))
	}
	return nil
}

func (c *conversation) answered(v jsontape.Value) error {
	answer := reply{model: strings.Clone(v.Get("result").TextOf("model"))}
	for listed := range v.Path("result", "data").Elements() {
		if listed.Get("isDefault").Bool() {
			answer.model = strings.Clone(listed.TextOf("model"))
		}
	}
	if refused := v.Get("error"); refused.Kind() == jsontape.Object {
		answer.err = errors.New(
			display.CutBytes(c.cfg.Redactor.String(strings.Clone(refused.TextOf("message"))), maxMessage),
		)
	}
	waited := c.client.requests.Answered(v.Get("id").Int64(), answer)
	c.client.mu.Lock()
	running := c.client.turn
	c.client.mu.Unlock()
	// the prompt itself was refused: no turn will begin, so none will end
	if !waited && answer.err != nil && running == "" {
		return answer.err
	}
	return nil
}

func (c *conversation) began(turn string) error {
	c.client.mu.Lock()
	c.client.turn = turn
	interrupt := c.client.interrupt
	c.client.interrupt = false
	c.client.mu.Unlock()
	if interrupt {
		return c.interrupt(turn)
	}
	return nil
}

// maxMessage is how much of the program's error is shown; some repeat themselves at length.
const maxMessage = 300

// answerTo replies to a question of the program. Permissions are skipped, so none should come;
// a request that comes anyway must not hang.
func answerTo(method string, v jsontape.Value) object {
	id := rawID(v.Get("id"))
	switch method {
	case "item/commandExecution/requestApproval", "item/fileChange/requestApproval":
		return object{"id": id, "result": object{"decision": "accept"}}
	case "execCommandApproval", "applyPatchApproval":
		return object{"id": id, "result": object{"decision": "approved"}}
	case "mcpServer/elicitation/request":
		return object{"id": id, "result": object{"action": "decline", "content": nil}}
	}
	return object{"id": id, "error": object{"code": -32601, "message": "not supported"}}
}

// rawID gives an id back as it came: a number or a string.
func rawID(id jsontape.Value) any {
	if id.Kind() == jsontape.Number {
		return id.Int64()
	}
	return id.Text()
}
