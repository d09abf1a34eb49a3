package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/internal/retry"
)

// Config says where a model is and how to retry. Only Protocol is required.
type Config struct {
	Protocol Protocol
	// BaseURL means what it means to the vendor's own SDK: without /v1 for Anthropic
	// (ANTHROPIC_BASE_URL), with /v1 for OpenAI (OPENAI_BASE_URL). Empty is the vendor's public
	// endpoint.
	BaseURL string
	// ModelURL is the neutral form: an endpoint without /v1, possibly with a path, that serves any
	// of the protocols. It wins over BaseURL.
	ModelURL string
	// APIKey is sent the way the protocol wants it; empty sends none, which is right for local
	// servers.
	APIKey string
	// AuthToken is sent as a bearer token in the Anthropic protocol (ANTHROPIC_AUTH_TOKEN).
	AuthToken string
	// HTTPClient defaults to one without an overall time limit.
	HTTPClient *http.Client
	// MaxRetries defaults to DefaultMaxRetries; a negative number means none.
	MaxRetries int
	// OnRetry, where set, is called before every wait.
	OnRetry func(RetryInfo)
	// IdleTimeout is the longest silence tolerated, before the first byte and between two; the
	// default is defaultIdleTimeout.
	IdleTimeout time.Duration
	// Now and Sleep replace the clock in tests.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
}

// defaultIdleTimeout is generous because an endpoint is silent until its reply is complete.
const defaultIdleTimeout = 10 * time.Minute

// maxReplySize bounds a reply.
const maxReplySize = 64 << 20

// ConfigFromEnv reads the variables of the vendor's SDK, such as ANTHROPIC_API_KEY,
// ANTHROPIC_AUTH_TOKEN and ANTHROPIC_BASE_URL.
func ConfigFromEnv(protocol Protocol, getenv func(string) string) Config {
	cfg := Config{Protocol: protocol}
	if info := protocol.Info(); info != nil {
		cfg.APIKey, cfg.BaseURL = getenv(info.KeyVariable), getenv(info.URLVariable)
		if info.TokenVariable != "" {
			cfg.AuthToken = getenv(info.TokenVariable)
		}
	}
	return cfg
}

// protocolCodec translates between the neutral form and a protocol.
type protocolCodec interface {
	wire.Protocol
	// encode renders a request. Imitations of the vendor's endpoint understand less than it does.
	encode(req Request, vendor bool) ([]byte, error)
	// decode reads a whole reply but for its usage.
	decode(body []byte) (Response, error)
}

type client struct {
	cfg   Config
	base  string // the address that paths are below
	codec protocolCodec
	retry retry.Policy
}

// New returns a client. It opens no connection.
func New(cfg Config) (Client, error) {
	base, err := cfg.Base()
	if err != nil {
		return nil, err
	}
	c := &client{cfg: cfg, base: base, codec: cfg.Protocol.codec()}
	c.fillDefaults()
	return c, nil
}

func (c *client) fillDefaults() {
	if c.cfg.HTTPClient == nil {
		c.cfg.HTTPClient = &http.Client{}
	}
	// A redirect would show the key and the conversation to another server.
	unmoved := *c.cfg.HTTPClient
	unmoved.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.cfg.HTTPClient = &unmoved
	if c.cfg.IdleTimeout <= 0 {
		c.cfg.IdleTimeout = defaultIdleTimeout
	}
	if c.cfg.Now == nil {
		c.cfg.Now = time.Now
	}
	c.retry = c.cfg.policy()
}

// Base returns the address that the paths of the protocol are below, its version included.
func (cfg Config) Base() (string, error) {
	info := cfg.Protocol.Info()
	if info == nil {
		return "", fmt.Errorf("unknown model protocol %q: want one of %q", cfg.Protocol, ProtocolNames())
	}
	base, what := cfg.BaseURL, "base URL"
	switch {
	case cfg.ModelURL != "":
		// People paste the OpenAI form too; no path ends in /v1/v1.
		base, what = strings.TrimSuffix(strings.TrimRight(cfg.ModelURL, "/"), "/v1")+info.Version, "model URL"
	case base == "":
		base = info.URL
	case !info.VersionInURL:
		base = strings.TrimRight(base, "/") + info.Version
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%s %q is not an http or https address", what, base)
	}
	return u.String(), nil
}

// Complete implements Client.
func (c *client) Complete(ctx context.Context, req Request) (Response, error) {
	body, err := c.codec.encode(req, c.base == c.codec.Info().URL)
	if err != nil {
		return Response{}, &Error{Kind: KindInvalidRequest, Err: err, RetryAfter: -1}
	}
	var reply Response
	err = c.retry.Do(ctx, func(attempt int) error {
		var err error
		reply, err = c.once(ctx, c.base+c.codec.Path(req.Model, false), body)
		reply.Attempts = attempt
		failure, ok := errors.AsType[*Error](err)
		if !ok {
			return err
		}
		failure.Attempts = attempt
		if !failure.Retryable {
			return failure
		}
		return retry.Later(failure, failure.RetryAfter)
	})
	if err != nil {
		return Response{}, err
	}
	if reply.StopReason == StopRefusal {
		return reply, &Error{
			Kind:       KindRefusal,
			Message:    reply.Text(),
			RetryAfter: -1,
			Attempts:   reply.Attempts,
		}
	}
	return reply, nil
}

// errSilence is the cause of a request cancelled by the idle timer.
var errSilence = errors.New("the endpoint went silent")

// once makes one request.
func (c *client) once(ctx context.Context, address string, body []byte) (Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(c.cfg.IdleTimeout, func() { cancel(errSilence) })
	defer idle.Stop()

	httpReq, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Response{}, &Error{Kind: KindInvalidRequest, Err: err, RetryAfter: -1}
	}
	c.setHeader(httpReq.Header)
	httpReply, err := c.cfg.HTTPClient.Do(httpReq)
	if err != nil {
		return Response{}, networkError(ctx, err)
	}
	defer func() { _ = httpReply.Body.Close() }()
	idle.Reset(c.cfg.IdleTimeout)
	replyBody := &watchedReader{r: httpReply.Body, progress: func() { idle.Reset(c.cfg.IdleTimeout) }}

	if httpReply.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(replyBody, 1<<20)) // a cut error body still has its status
		return Response{}, errorFromReply(httpReply.StatusCode, httpReply.Header, data, c.cfg.Now())
	}
	data, err := io.ReadAll(io.LimitReader(replyBody, maxReplySize+1))
	switch {
	case err != nil:
		return Response{}, networkError(ctx, err)
	case len(data) > maxReplySize:
		return Response{}, &Error{Kind: KindProtocol, Message: "reply is larger than 64 MiB", RetryAfter: -1}
	}
	reply, err := c.codec.decode(data)
	if err != nil {
		return Response{}, replyError(err)
	}
	reply.Usage = wire.ReplyUsage(c.codec, data)
	return reply, nil
}

func (c *client) setHeader(header http.Header) {
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json")
	header.Set("User-Agent", "fit")
	info := c.codec.Info()
	maps.Copy(header, info.Header)
	maps.Copy(header, info.Authorization(c.cfg.APIKey))
	if c.cfg.AuthToken != "" && info.TokenVariable != "" {
		header.Set("Authorization", "Bearer "+c.cfg.AuthToken)
	}
}

// toolCall makes a call of the arguments a model wrote, which need not be JSON.
func toolCall(id, name, arguments string) *ToolCall {
	call := &ToolCall{ID: id, Name: name, Input: json.RawMessage("{}")}
	trimmed := strings.TrimSpace(arguments)
	switch {
	case trimmed == "":
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		call.Input = json.RawMessage(trimmed)
	default:
		call.InvalidInput = arguments
	}
	return call
}
