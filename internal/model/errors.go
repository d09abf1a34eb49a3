package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/internal/retry"
)

// Kind classifies what went wrong.
type Kind string

// The kinds of errors.
const (
	KindAuth            Kind = "auth"             // the key is missing, wrong, or not allowed to do this
	KindQuota           Kind = "quota"            // the account has run out of money or quota
	KindRateLimit       Kind = "rate_limit"       // too many requests or tokens for now
	KindOverloaded      Kind = "overloaded"       // the service has no capacity for now
	KindServer          Kind = "server"           // the service failed
	KindContextOverflow Kind = "context_overflow" // the conversation does not fit the model's window
	KindRefusal         Kind = "refusal"          // the model declined
	KindInvalidRequest  Kind = "invalid_request"  // the request is wrong, or the model does not exist
	KindNetwork         Kind = "network"          // no connection, or it broke
	KindProtocol        Kind = "protocol"         // the reply is not what the protocol says
)

// Error is what Complete returns for everything but a cancelled context.
type Error struct {
	Kind Kind
	// Status is the HTTP status, or 0 where there was no reply or the error came inside a stream.
	Status int
	// Type and Message are the service's own words.
	Type      string
	Message   string
	RequestID string
	// Retryable says that the same request may succeed later.
	Retryable bool
	// RetryAfter is how long the service asked to wait; negative where it did not say.
	RetryAfter time.Duration
	// Attempts is the number of requests made before giving up.
	Attempts int
	// Err is the cause where the error is not the service's.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(kindText[e.Kind])
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	switch {
	case e.Message != "":
		fmt.Fprintf(&b, ": %s", e.Message)
	case e.Err != nil:
		fmt.Fprintf(&b, ": %v", e.Err)
	case e.Type != "":
		fmt.Fprintf(&b, ": %s", e.Type)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (after %d attempts)", e.Attempts)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

var kindText = map[Kind]string{
	KindAuth:            "model endpoint rejected the credentials",
	KindQuota:           "model account has no quota left, or may not do this",
	KindRateLimit:       "model endpoint limits the rate",
	KindOverloaded:      "model endpoint is overloaded",
	KindServer:          "model endpoint failed",
	KindContextOverflow: "conversation does not fit the model's context window",
	KindRefusal:         "model refused to answer",
	KindInvalidRequest:  "model endpoint rejected the request",
	KindNetwork:         "no usable connection to the model endpoint",
	KindProtocol:        "model endpoint violated the protocol",
}

// errorFromReply classifies an HTTP error reply.
func errorFromReply(status int, header http.Header, body []byte, now time.Time) *Error {
	e := classify(status, wire.DecodeError(body))
	e.RetryAfter = retry.Asked(header, now)
	e.RequestID = cmp.Or(e.RequestID, header.Get("request-id"), header.Get("x-request-id"))
	switch header.Get("x-should-retry") { // both vendors set it if they know better than the status
	case "true":
		e.Retryable = true
	case "false":
		e.Retryable = false
	}
	return e
}

// classify turns the service's error and its status (0 inside a stream) into an Error.
func classify(status int, api *wire.APIError) *Error {
	e := &Error{
		Status:     status,
		Type:       api.Type,
		Message:    api.Message,
		RequestID:  api.RequestID,
		RetryAfter: -1,
	}
	e.Type = cmp.Or(e.Type, api.Code)
	e.Kind, e.Retryable = kindOf(status, api)
	return e
}

func kindOf(status int, api *wire.APIError) (Kind, bool) {
	words := api.Type + " " + api.Code
	switch {
	case isQuota(api):
		return KindQuota, false
	case isOverflow(status, api):
		return KindContextOverflow, false
	case status == http.StatusUnauthorized || status == http.StatusForbidden ||
		strings.Contains(words, "authentication_error") || strings.Contains(words, "permission_error") ||
		strings.HasPrefix(api.Message, "API key not valid"): // which Google calls a bad request
		return KindAuth, false
	case status == http.StatusTooManyRequests || strings.Contains(words, "rate_limit"):
		return KindRateLimit, true
	case status == 529 || status == http.StatusServiceUnavailable || strings.Contains(words, "overloaded"):
		return KindOverloaded, true
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		return KindServer, true
	case status == 0 && !strings.Contains(words, "invalid_request"):
		return KindServer, true // an error inside a stream is the service's own
	case api.Fault(status) == wire.FaultService:
		return KindServer, status == http.StatusTooEarly
	case api.Fault(status) == wire.FaultAccount && !api.NoModel(status):
		return KindQuota, false
	default:
		return KindInvalidRequest, false
	}
}

func isQuota(api *wire.APIError) bool {
	return api.Code == "insufficient_quota" || api.Type == "insufficient_quota" || api.Type == "billing_error" ||
		strings.Contains(api.Message, "credit balance is too low")
}

// overflowWords are phrases with which services report that a conversation is too long; few have a
// code for it.
var overflowWords = []string{
	"prompt is too long", "context_length_exceeded", "maximum context length", "context window", "exceed context limit",
	"exceeds the available context size", "too many tokens",
}

func isOverflow(status int, api *wire.APIError) bool {
	if api.Code == "context_length_exceeded" {
		return true
	}
	if api.Fault(status) != wire.FaultRequest {
		return false
	}
	tooLarge := status == http.StatusRequestEntityTooLarge
	if !tooLarge && status != http.StatusBadRequest && status != 0 {
		return false
	}
	message := strings.ToLower(api.Message)
	return tooLarge ||
		slices.ContainsFunc(overflowWords, func(words string) bool { return strings.Contains(message, words) })
}

// replyError classifies what went wrong with a reply that had begun well.
func replyError(err error) error {
	if api, ok := errors.AsType[*wire.APIError](err); ok {
		return classify(0, api)
	}
	return &Error{
		Kind:       KindProtocol,
		Err:        err,
		Retryable:  true,
		RetryAfter: -1,
	}
}

// networkError wraps a failure of the connection. The retry loop checks whether the caller
// cancelled.
func networkError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilence) {
		err = errSilence
	}
	return &Error{
		Kind:       KindNetwork,
		Err:        err,
		Retryable:  true,
		RetryAfter: -1,
	}
}

// watchedReader reports every read that brought something.
type watchedReader struct {
	r        io.Reader
	progress func()
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.progress()
	}
	return n, err
}
