package events

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/session"
)

// Run is one prompt of an agent that is written with Serve.
type Run struct {
	Prompt string

	ctx   context.Context
	out   io.Writer
	calls int
}

// Input is the input of a tool.
type Input map[string]any

type toolCall struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input Input  `json:"input"`
}

type toolResult struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Output   string `json:"output"`
	IsError  bool   `json:"is_error"`
	ExitCode *int   `json:"exit_code,omitempty"`
}

// Serve is all that an agent's main function needs: it reads the prompt from standard input, calls
// work, and prints what happens as events. The answer that work returns is the result, or its
// error.
func Serve(work func(*Run) (answer string, err error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	prompt, err := io.ReadAll(os.Stdin)
	run := &Run{Prompt: string(prompt), ctx: ctx, out: os.Stdout}
	if err == nil {
		err = run.serve(work)
	}
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// serve runs work, and prints how it ended.
func (r *Run) serve(work func(*Run) (answer string, err error)) error {
	answer, err := work(r)
	result := Result{Type: TypeResult, Success: err == nil, Text: answer}
	if err != nil {
		result.Text, result.Kind = err.Error(), kindOf(err)
	}
	return errors.Join(err, r.print(result))
}

func (r *Run) print(event any) error {
	_, err := r.out.Write(append(Line(event), '\n'))
	return err
}

// Ask asks the model that fit has named, over the Chat Completions protocol, and reports what that
// consumed.
func (r *Run) Ask(text string) (string, error) {
	client, err := model.New(model.ConfigFromEnv(model.Chat, os.Getenv))
	if err != nil {
		return "", err
	}
	name := os.Getenv("FIT_MODEL")
	reply, err := client.Complete(r.ctx, model.Request{
		Model:    name,
		Messages: []model.Message{model.UserText(text)},
	})
	if err != nil {
		return "", err
	}
	return reply.Text(), r.print(Usage{
		Type:             TypeUsage,
		Model:            name,
		InputTokens:      reply.Usage.InputTokens,
		OutputTokens:     reply.Usage.OutputTokens,
		CacheReadTokens:  reply.Usage.CacheReadTokens,
		CacheWriteTokens: reply.Usage.CacheWriteTokens,
	})
}

// Call runs a tool, and reports its call and its result.
func (r *Run) Call(name string, input Input, tool func() ([]byte, error)) ([]byte, error) {
	r.calls++
	id := strconv.Itoa(r.calls)
	call := toolCall{
		Type:  typeToolCall,
		ID:    id,
		Name:  name,
		Input: input,
	}
	if err := r.print(call); err != nil {
		return nil, err
	}
	output, err := tool()
	result := toolResult{
		Type:    typeToolResult,
		ID:      id,
		Output:  string(output),
		IsError: err != nil,
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		result.ExitCode = new(exit.ExitCode())
	case err != nil && len(output) == 0:
		result.Output = err.Error()
	}
	return output, errors.Join(err, r.print(result))
}

// kindOf returns the format's kind for an error of a model.
func kindOf(err error) string {
	failure, ok := errors.AsType[*model.Error](err)
	if !ok {
		return ""
	}
	kind := session.ErrorOther
	switch failure.Kind {
	case model.KindAuth, model.KindQuota:
		kind = session.ErrorAuth
	case model.KindRateLimit:
		kind = session.ErrorRateLimit
	case model.KindOverloaded:
		kind = session.ErrorOverloaded
	case model.KindServer, model.KindNetwork, model.KindProtocol:
		kind = session.ErrorAPI
	case model.KindContextOverflow:
		kind = session.ErrorContextOverflow
	case model.KindRefusal:
		kind = session.ErrorRefusal
	case model.KindInvalidRequest:
	}
	return string(kind)
}
