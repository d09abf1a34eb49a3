package bridge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/retry"
	"github.com/fit-eval/fit/redact"
)

// Client posts to one bridge.
type Client struct {
	// URL is the callback address. It holds a token, so it is never part of an error.
	URL           string
	CorrelationID string
	// Redactor takes secrets out of everything that is posted.
	Redactor *redact.Redactor
	// HTTP sends the requests; nil is a default client.
	HTTP *http.Client
	// Timeout is that of one attempt; 0 is 15 seconds.
	Timeout time.Duration
	// Attempts is how often one post is tried; 0 is 8.
	Attempts int
	// Backoff is the pause after the first failed attempt; it doubles up to a minute. 0 is half a
	// second.
	Backoff time.Duration
}

const (
	defaultTimeout  = 15 * time.Second
	defaultAttempts = 8
	defaultBackoff  = 500 * time.Millisecond
	maxBackoff      = time.Minute
	flushPause      = time.Second // when the session waits for the last replies
)

// StatusError is a response of a bridge that is not a success.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	switch e.Status {
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("the bridge answered %d: the token of this callback is unknown or has expired",
			e.Status)
	case http.StatusGone:
		return "the bridge answered 410: the thread is gone"
	default:
		return fmt.Sprintf("the bridge answered %d %s", e.Status, http.StatusText(e.Status))
	}
}

// PostTerminal reports the end of the session to the bridge.
func (c Client) PostTerminal(ctx context.Context, t Terminal) error {
	return c.post(ctx, Callback{CorrelationID: c.CorrelationID, Kind: KindTerminal, Terminal: &t}, nil)
}

// post sends a callback, with retries after transient errors. When flush is closed, or nil, pauses
// between two attempts are short.
func (c Client) post(ctx context.Context, callback Callback, flush <-chan struct{}) error {
	body, err := jsonenc.Marshal(callback)
	if err != nil {
		return fmt.Errorf("encode callback: %w", err)
	}
	if c.Redactor != nil {
		body = c.Redactor.JSON(body)
	}
	policy := retry.Policy{
		Retries: cmp.Or(c.Attempts, defaultAttempts) - 1,
		First:   cmp.Or(c.Backoff, defaultBackoff),
		Longest: maxBackoff,
		Sleep:   func(ctx context.Context, pause time.Duration) error { return sleep(ctx, pause, flush) },
	}
	var last error
	err = policy.Do(ctx, func(int) error {
		last = c.attempt(ctx, body)
		return last
	})
	if err != nil && ctx.Err() != nil {
		return last // it says more than the end of the context
	}
	return err
}

// attempt posts once. An error that another attempt may cure is marked by retry.Later.
func (c Client) attempt(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, defaultTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := httpClient(c.HTTP).Do(request)
	if err != nil {
		return retry.Later(fmt.Errorf("the bridge cannot be reached: %w", withoutURL(err)), retry.Unasked)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16)) // so that the connection can be used again
	if response.StatusCode/100 == 2 {
		return nil
	}
	refused := &StatusError{response.StatusCode}
	if !transient(response.StatusCode) {
		return refused
	}
	return retry.Later(refused, min(retry.Asked(response.Header, time.Now()), maxBackoff))
}

// withoutURL takes the address, which holds a token, out of an error.
func withoutURL(err error) error {
	if with, ok := errors.AsType[*url.Error](err); ok {
		return with.Err
	}
	return err
}

// sleep pauses until the time has passed or the session ends; after that, and where flush is nil,
// pauses are short.
func sleep(ctx context.Context, pause time.Duration, flush <-chan struct{}) error {
	select {
	case <-flush:
		flush = nil
	default:
	}
	if flush == nil {
		pause = min(pause, flushPause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-flush:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// httpClient returns the given client, or the default one, without redirects: the address holds a
// token, which a redirect would send on in the Referer header, and a page that answers the redirect
// has not taken the callback.
func httpClient(given *http.Client) *http.Client {
	client := *cmp.Or(given, http.DefaultClient)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}
