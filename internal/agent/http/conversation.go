package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	jmespath "github.com/jmespath-community/go-jmespath"

	"github.com/fit-eval/fit/agent/events"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/retry"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

const (
	// maxReply bounds what an agent may answer.
	maxReply = 16 << 20
	// maxHeader bounds the header of an answer, with everything that comes before it.
	maxHeader = 256 << 10
	// maxSession limits the id of a session, which is in every request and record.
	maxSession = 4 << 10
	// maxSaid is how much of a reply that is not an answer is repeated in a message.
	maxSaid = 300
	// defaultRetries ride out half a minute of trouble.
	defaultRetries = 4
	// replyTimeout is the default timeout for one answer of an agent.
	replyTimeout = 30 * time.Minute
)

// conversation is one session with the agent. Each prompt is a request.
type conversation struct {
	entry  Entry
	cfg    agent.Config
	client *nethttp.Client
	sleep  func(context.Context, time.Duration) error // nil: the real clock

	prompting sync.Mutex
	decoder   session.Decoder
	fold      *session.Fold
	prompts   int
	started   bool

	mu sync.Mutex
	id string
}

func newConversation(entry Entry, cfg agent.Config) *conversation {
	transport := nethttp.DefaultTransport.(*nethttp.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxHeader
	return &conversation{
		entry:   entry,
		cfg:     cfg,
		id:      cfg.Resume,
		decoder: events.Dialect().New(),
		fold:    session.NewFold(session.Options{Flat: true, Prices: cfg.Prices}),
		client: &nethttp.Client{
			Transport: transport,
			Timeout:   replyTimeout,
			// A key is meant for one address.
			CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse },
		},
	}
}

// ID implements agent.Session.
func (c *conversation) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// Close implements agent.Session.
func (c *conversation) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	c.prompting.Lock()
	defer c.prompting.Unlock()
	if c.prompts > 0 && c.ID() == "" {
		return agent.Result{}, agent.Refuse(session.AgentID(c.entry.ID),
			"agent %s cannot continue a conversation: it has not reported a session id", c.entry.ID)
	}
	c.prompts++
	c.announce()
	before, start := c.fold.TotalUsage(), time.Now().UnixMilli()
	turns, reports := c.fold.Turns(), c.fold.UsageReports()
	reply, err := c.ask(ctx, text)
	result := c.finish(ctx, reply, err)
	result.SessionID = c.ID()
	result.Turns = c.fold.Turns() - turns
	result.Usage = c.fold.TotalUsage().Since(before)
	if c.cfg.Consumed != nil && c.fold.UsageReports() > reports {
		c.cfg.Consumed(result.Usage)
	}
	result.Output = agent.RawAgentOutput{
		Agent:      session.AgentID(c.entry.ID),
		Argv:       []string{},
		Version:    c.cfg.Installation.Version,
		StartMs:    start,
		EndMs:      time.Now().UnixMilli(),
		TimedOut:   result.Outcome == session.OutcomeTimeout,
		KeyVisible: false,
	}
	return result, nil
}

func (c *conversation) announce() {
	if c.cfg.Started != nil && !c.started {
		c.cfg.Started(agent.Started{
			Version:  c.cfg.Installation.Version,
			Protocol: events.DialectName,
			Model:    c.cfg.Model,
		})
	}
	c.started = true
}

// emit passes an event on and updates the state from it.
func (c *conversation) emit(event []byte) {
	c.cfg.Events(event)
	at := session.Stamp{Ts: time.Now().UnixMilli(), Lane: c.cfg.Name}
	c.decoder.Decode(event, at, c.fold)
}

// failure is a request that got no answer.
type failure struct {
	kind    session.ErrorKind
	status  int
	message string
}

func (f *failure) Error() string { return f.message }

// ask sends the request until there is a reply, or a retry cannot help.
func (c *conversation) ask(ctx context.Context, prompt string) ([]byte, error) {
	policy := retry.Policy{
		Retries:      defaultRetries,
		First:        500 * time.Millisecond,
		Longest:      30 * time.Second,
		LongestAsked: 10 * time.Minute,
		OnRetry:      c.onRetry,
		Sleep:        c.sleep,
	}
	if c.entry.Retries != nil {
		policy.Retries = *c.entry.Retries
	}
	if c.cfg.Retries != nil {
		policy.Retries = *c.cfg.Retries
	}
	var reply []byte
	err := policy.Do(ctx, func(int) error {
		var err error
		reply, err = c.once(ctx, prompt)
		return err
	})
	return reply, err
}

func (c *conversation) onRetry(attempt int, _ time.Duration, err error) {
	event := events.Error{
		Type:     events.TypeError,
		Attempt:  attempt,
		Message:  err.Error(),
		Retrying: true,
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		event.Status = failed.status
	}
	c.emit(events.Line(event))
}

// once sends the request once.
func (c *conversation) once(ctx context.Context, prompt string) ([]byte, error) {
	request, err := c.request(ctx, prompt)
	if err != nil {
		return nil, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		if address, ok := errors.AsType[*url.Error](err); ok {
			err = address.Err // the address may have a session in it, and says nothing new
		}
		return nil, retry.Later(&failure{kind: session.ErrorAPI, message: c.shown("no answer: " + err.Error())},
			retry.Unasked)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, retry.Later(&failure{
			kind:    session.ErrorAPI,
			message: c.shown("the answer was cut off: " + err.Error()),
		}, retry.Unasked)
	case len(body) > maxReply:
		return nil, &failure{
			kind:    session.ErrorOther,
			message: fmt.Sprintf("the answer is longer than %d MiB", maxReply>>20),
		}
	}
	return body, c.judge(response, body)
}

func (c *conversation) request(ctx context.Context, prompt string) (*nethttp.Request, error) {
	known := map[string]string{
		wordPrompt:  prompt,
		wordSystem:  c.cfg.SystemPrompt,
		wordModel:   c.cfg.Model,
		wordSession: c.ID(),
	}
	escaped := map[string]string{}
	for word, value := range known {
		escaped[word] = url.QueryEscape(value)
	}
	var body io.Reader
	if c.entry.method() != nethttp.MethodGet {
		content, err := json.Marshal(fill(c.entry.body(), known))
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		body = bytes.NewReader(content)
	}
	request, err := nethttp.NewRequestWithContext(ctx, c.entry.method(), replaced(c.entry.URL, escaped), body)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "fit")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.entry.Headers {
		request.Header.Set(name, variable.Get().ReplaceAllStringFunc(value, func(use string) string {
			return agent.Getenv(c.cfg.Environ, use[2:len(use)-1])
		}))
	}
	return request, nil
}

// judge returns why a reply is not an answer.
func (c *conversation) judge(response *nethttp.Response, body []byte) error {
	status := response.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	said := fmt.Sprintf("it answered with status %d: %s", status, c.shown(string(body)))
	failed := &failure{kind: session.ClassifyFailure(status, said).Kind, status: status, message: said}
	switch {
	case status >= 300 && status < 400:
		failed.kind = session.ErrorOther
		failed.message = fmt.Sprintf("it answered with status %d; redirects are not followed: give the address that "+
			"it leads to", status)
		return failed
	case status == nethttp.StatusTooManyRequests, status == nethttp.StatusRequestTimeout, status >= 500:
		return retry.Later(failed, retry.Asked(response.Header, time.Now()))
	case failed.kind == session.ErrorAPI: // a refused request is our own fault
		failed.kind = session.ErrorOther
	}
	return failed
}

// shown returns the part of a foreign text that messages repeat, without secrets.
func (c *conversation) shown(text string) string {
	return display.Line(c.cfg.Redactor.Cut(text, maxSaid))
}

// finish records the reply and the result, and returns the outcome.
func (c *conversation) finish(ctx context.Context, reply []byte, err error) agent.Result {
	if err == nil {
		c.cfg.Events(trace.RawEvent(trace.TypeRaw, reply))
		err = c.read(reply)
	}
	if err != nil {
		return c.fail(ctx, err)
	}
	final, _ := c.fold.Finals()
	return agent.Result{Success: true, Outcome: session.OutcomeSuccess, Text: final.Text}
}

func (c *conversation) fail(ctx context.Context, err error) agent.Result {
	end := events.Result{Type: events.TypeResult, Text: c.shown(err.Error()), Session: c.ID()}
	if failed, ok := errors.AsType[*failure](err); ok {
		end.Kind = string(failed.kind)
	}
	if ctx.Err() != nil {
		end.Kind = string(session.ErrorAborted)
	}
	c.emit(events.Line(end))
	final, _ := c.fold.Finals()
	result := agent.Result{Outcome: final.Outcome, Err: errors.New(final.Text)}
	if ctx.Err() != nil {
		result.Aborted, result.Outcome, result.Err = true, session.OutcomeCancelled, nil
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			result.Outcome = session.OutcomeTimeout
		}
	}
	return result
}

// read finds the answer, the session and the usage in a reply.
func (c *conversation) read(reply []byte) error {
	var document any
	if err := json.Unmarshal(reply, &document); err != nil {
		return &failure{kind: session.ErrorOther, message: "the answer is not JSON: " + c.shown(string(reply))}
	}
	answer, err := jmespath.Search(c.entry.answer(), document)
	if err != nil || strings.TrimSpace(asText(answer)) == "" {
		return &failure{
			kind:    session.ErrorOther,
			message: fmt.Sprintf("there is no %s in the answer: %s", c.entry.answer(), c.shown(string(reply))),
		}
	}
	id := asText(find(document, c.entry.Session))
	if len(id) > maxSession {
		return &failure{
			kind:    session.ErrorOther,
			message: fmt.Sprintf("the id of the session is longer than %d KiB", maxSession>>10),
		}
	}
	if id != "" {
		c.mu.Lock()
		c.id = id
		c.mu.Unlock()
	}
	c.usage(document)
	c.emit(events.Line(events.Result{
		Type:    events.TypeResult,
		Success: true,
		Text:    asText(answer),
		Session: c.ID(),
	}))
	return nil
}

func (c *conversation) usage(document any) {
	paths := c.entry.Usage
	event := events.Usage{Type: events.TypeUsage, Model: asText(find(document, paths.Model))}
	known := false
	for path, into := range map[string]*int64{
		paths.Input: &event.InputTokens, paths.Output: &event.OutputTokens,
		paths.CacheRead: &event.CacheReadTokens, paths.CacheWrite: &event.CacheWriteTokens,
	} {
		if number, ok := find(document, path).(float64); ok {
			*into, known = int64(number), true
		}
	}
	if cost, ok := find(document, paths.CostUSD).(float64); ok {
		event.CostUSD, known = &cost, true
	}
	if known {
		c.emit(events.Line(event))
	}
}

// find evaluates an expression; nil if there is none, or if it finds nothing.
func find(document any, expression string) any {
	if expression == "" {
		return nil
	}
	found, err := jmespath.Search(expression, document)
	if err != nil {
		return nil
	}
	return found
}

// asText returns a value as text: strings as they are, everything else as JSON.
func asText(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		return string(text)
	}
}
