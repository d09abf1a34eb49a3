package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsontape"
)

type object = map[string]any

// The codes of JSON-RPC errors that are used here.
const (
	codeAuthRequired  = -32000
	codeNoMethod      = -32601
	codeInvalidParams = -32602
)

// rpcError is an answer that says no.
type rpcError struct {
	code    int64
	message string
}

func (e *rpcError) Error() string { return e.message }

// maxMessage is how much of the program's error is shown.
const maxMessage = 300

// message is a JSON-RPC message that we send.
type message struct {
	Version string        `json:"jsonrpc"`
	ID      any           `json:"id,omitempty"`
	Method  string        `json:"method,omitempty"`
	Params  object        `json:"params,omitempty"`
	Result  any           `json:"result,omitempty"`
	Error   *messageError `json:"error,omitempty"`
}

type messageError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// note is a message of ours as it is in the trace.
type note struct {
	Dir string `json:"dir"`
	// Rules are the rules for reading the stream, with the first message.
	Rules *rules `json:"rules,omitempty"`
	// Permission is the decision, with the answer to a request for permission.
	Permission *permission `json:"permission,omitempty"`
	// Reason says why the prompt is cancelled, if the caller did not do it.
	Reason string  `json:"reason,omitempty"`
	Msg    message `json:"msg"`
}

// send writes a message to the program, and to the trace without secrets.
func (c *conversation) send(n note, secret ...string) error {
	full := n.Msg
	if len(secret) > 0 {
		shown := maps.Clone(n.Msg.Params)
		for _, name := range secret {
			delete(shown, name)
		}
		n.Msg.Params = shown
	}
	n.Dir = "out"
	line, err := jsonenc.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode message to agent: %w", err)
	}
	c.Note(line)
	return c.Send(full)
}

// call sends a request and waits, with a limit, for its answer, which is a copy of the line.
func (c *conversation) call(ctx context.Context, n note, secret ...string) (jsontape.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, agent.StartTimeout)
	defer cancel()
	id := c.requests.Begin(true)
	n.Msg.Version, n.Msg.ID = "2.0", id
	if err := c.send(n, secret...); err != nil {
		return jsontape.Value{}, err
	}
	var line []byte
	err := c.Until(ctx, func() (answered bool) {
		line, answered = c.requests.Fetch(id)
		return answered
	})
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer after %v", agent.StartTimeout)
		}
		return jsontape.Value{}, fmt.Errorf("%s: %w", n.Msg.Method, err)
	}
	v, _ := jsontape.Parse(line) // it was parsed before
	if refused := v.Get("error"); refused.Kind() == jsontape.Object {
		code, text := failureText(refused)
		return jsontape.Value{}, fmt.Errorf("%s: %w", n.Msg.Method, &rpcError{
			code:    code,
			message: c.cfg.Redactor.Cut(cmp.Or(display.Line(text), "refused without a reason"), maxMessage),
		})
	}
	return v.Get("result"), nil
}

// observe follows the protocol: answers to our requests, and requests of the program.
func (c *conversation) observe(event []byte) error {
	v, ok := jsontape.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		return nil // the decoder counts it
	}
	method, id := v.TextOf("method"), v.Get("id")
	c.quiet.note(method, v.Get("params"))
	if c.setup.restricted && method == "session/update" {
		c.named(v.Path("params", "update"))
	}
	switch {
	case method == "" && id.Kind() == jsontape.Number:
		c.requests.Answered(id.Int64(), bytes.Clone(v.Raw())) // the decoder counts unexpected answers
	case method != "" && id.Exists() && id.Kind() != jsontape.Null:
		return c.answer(method, id, v.Get("params"))
	}
	return nil
}

// answer replies to a request of the program. No request may hang.
func (c *conversation) answer(method string, id jsontape.Value, params jsontape.Value) error {
	reply := message{Version: "2.0", ID: json.RawMessage(bytes.Clone(id.Raw()))}
	switch {
	case method == "session/request_permission":
		return c.permit(reply, params)
	case c.entry.ServeFiles && method == "fs/read_text_file":
		reply.Result, reply.Error = c.readFile(params)
	case c.entry.ServeFiles && method == "fs/write_text_file":
		reply.Result, reply.Error = c.writeFile(params)
	default:
		reply.Error = &messageError{Code: codeNoMethod, Message: "not supported: " + display.CutBytes(method, 100)}
	}
	return c.Send(reply)
}
