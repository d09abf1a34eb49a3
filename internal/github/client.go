package github

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/retry"
)

// defaultBase is where the API is, unless an enterprise has its own.
const defaultBase = "https://api.github.com"

// Client talks to the API for one repository.
type Client struct {
	Base       string // GitHub's own if empty
	Token      string
	Repository Repository
	// HTTP sends the requests; nil means a default client. Redirects lose the token when they leave
	// the host, its port or its scheme.
	HTTP *http.Client
	// Timeout bounds a request that asks for a list; a download may take as long as bytes keep
	// coming. 30 s if zero.
	Timeout time.Duration
	// Sleep, Random and Now are for tests; nil means the real thing.
	Sleep  func(ctx context.Context, pause time.Duration) error
	Random func() float64
	Now    func() time.Time
	// Note, if set, is called with the reason for every wait.
	Note func(text string)
}

const (
	retries   = 4
	pageSize  = 100
	maxPages  = 10 // the API gives no more than a thousand runs to one question
	errorBody = 4 << 10
)

// apiError is an answer of the API that is not a success.
type apiError struct {
	Status  int
	Path    string
	Message string
	// LimitedFor is how long a used-up rate limit lasts.
	LimitedFor time.Duration
}

func (e *apiError) Error() string {
	text := fmt.Sprintf("GitHub answered %d to %s", e.Status, e.Path)
	if e.Message != "" {
		text += ": " + e.Message
	}
	switch {
	case e.LimitedFor > 0:
		text += fmt.Sprintf(" (the rate limit is used up for another %s)", e.LimitedFor.Round(time.Second))
	case e.Status == http.StatusUnauthorized:
		text += " (is the token still valid?)"
	case e.Status == http.StatusForbidden, e.Status == http.StatusNotFound:
		text += " (does the token have access to this in the repository?)"
	}
	return text
}

// Run is one run of a workflow.
type Run struct {
	ID         int64     `json:"id"`
	Name       string    `json:"name"`
	Status     string    `json:"status"`
	Conclusion *string   `json:"conclusion"`
	CreatedAt  time.Time `json:"created_at"`
	Branch     *string   `json:"head_branch"`
	URL        string    `json:"html_url"`
}

// Artifact is a file that a run left behind.
type Artifact struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Expired bool   `json:"expired"`
}

// Runs lists the runs created at or after a time, newest first; the zero time means all that the
// API gives.
func (c *Client) Runs(ctx context.Context, since time.Time) ([]Run, error) {
	values := url.Values{"per_page": {strconv.Itoa(pageSize)}}
	if !since.IsZero() {
		values.Set("created", ">="+since.UTC().Format(time.RFC3339))
	}
	var all []Run
	err := c.pages(ctx, "actions/runs", values, maxPages, func(body []byte) error {
		var page struct {
			Runs []Run `json:"workflow_runs"`
		}
		err := json.Unmarshal(body, &page)
		all = append(all, page.Runs...)
		return err
	})
	return all, err
}

// Artifacts lists the artifacts of a run.
func (c *Client) Artifacts(ctx context.Context, run int64) ([]Artifact, error) {
	var all []Artifact
	err := c.pages(ctx, fmt.Sprintf("actions/runs/%d/artifacts", run), url.Values{"per_page": {strconv.Itoa(pageSize)}},
		maxPages, func(body []byte) error {
			var page struct {
				Artifacts []Artifact `json:"artifacts"`
			}
			err := json.Unmarshal(body, &page)
			all = append(all, page.Artifacts...)
			return err
		})
	return all, err
}

// Download writes the zip file of an artifact.
func (c *Client) Download(ctx context.Context, artifact Artifact, w io.Writer, limit int64) error {
	return c.copyTo(ctx, fmt.Sprintf("actions/artifacts/%d/zip", artifact.ID), w, limit,
		fmt.Sprintf("artifact %q", artifact.Name))
}

// Logs writes the zip file with the logs of a run.
func (c *Client) Logs(ctx context.Context, run int64, w io.Writer, limit int64) error {
	return c.copyTo(ctx, fmt.Sprintf("actions/runs/%d/logs", run), w, limit, fmt.Sprintf("logs of run %d", run))
}

// copyTo downloads a file of at most limit bytes; what names it in errors.
func (c *Client) copyTo(ctx context.Context, path string, w io.Writer, limit int64, what string) error {
	response, err := c.get(ctx, c.url(path, nil), false)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	n, err := io.Copy(w, io.LimitReader(response.Body, limit+1))
	if err != nil {
		return fmt.Errorf("download %s: %w", what, err)
	}
	if n > limit {
		return fmt.Errorf("download %s: larger than %d bytes", what, limit)
	}
	return nil
}

func (c *Client) base() string { return strings.TrimSuffix(cmp.Or(c.Base, defaultBase), "/") }

func (c *Client) url(path string, values url.Values) string {
	full := fmt.Sprintf("%s/repos/%s/%s/%s", c.base(), url.PathEscape(c.Repository.Owner),
		url.PathEscape(c.Repository.Name), path)
	if len(values) > 0 {
		full += "?" + values.Encode()
	}
	return full
}

// pages follows the links from page to page.
func (c *Client) pages(
	ctx context.Context, path string, values url.Values, limit int, take func(body []byte) error,
) error {
	next := c.url(path, values)
	for range limit {
		body, link, err := c.page(ctx, next)
		if err != nil {
			return err
		}
		if err := take(body); err != nil {
			return fmt.Errorf("GitHub's answer to %s: %w", path, err)
		}
		if next = nextLink(link, next); next == "" {
			return nil
		}
	}
	return nil
}

func (c *Client) page(ctx context.Context, address string) (body []byte, link string, err error) {
	response, err := c.get(ctx, address, true)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, 64<<20))
	return body, response.Header.Get("Link"), err
}

// nextLink returns the address of the next page, if it is on the same host: the token is sent
// nowhere else.
func nextLink(header, current string) string {
	for part := range strings.SplitSeq(header, ",") {
		address, rest, ok := strings.Cut(strings.TrimSpace(part), ">")
		if !ok || !strings.Contains(rest, `rel="next"`) {
			continue
		}
		next, err := url.Parse(strings.TrimPrefix(address, "<"))
		here, hereErr := url.Parse(current)
		if err == nil && hereErr == nil && next.Host == here.Host && next.Scheme == here.Scheme {
			return next.String()
		}
	}
	return ""
}

// maxRateLimitWait is how long to wait for a rate limit to pass before giving up.
const maxRateLimitWait = 2 * time.Minute

// get sends a request, with retries, until there is a usable answer. The caller closes the body.
func (c *Client) get(ctx context.Context, address string, bounded bool) (*http.Response, error) {
	policy := retry.Policy{
		Retries:      retries,
		First:        time.Second,
		Longest:      time.Minute,
		LongestAsked: maxRateLimitWait,
		Sleep:        c.Sleep,
		Random:       c.Random,
	}
	if c.Note != nil {
		policy.OnRetry = func(_ int, pause time.Duration, err error) {
			c.Note(fmt.Sprintf("%v; trying again in %s", err, pause.Round(time.Second)))
		}
	}
	var response *http.Response
	//nolint:bodyclose // failure closes it; the caller closes a good one
	err := policy.Do(ctx, func(int) (err error) {
		if response, err = c.once(ctx, http.MethodGet, address, nil, bounded); err != nil {
			return retry.Later(fmt.Errorf("GitHub cannot be reached: %w", err), retry.Unasked)
		}
		if response.StatusCode >= 300 {
			return c.failure(response, address)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (c *Client) once(
	ctx context.Context, method, address string, content []byte, bounded bool,
) (*http.Response, error) {
	cancel := context.CancelFunc(func() {})
	if bounded {
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(c.Timeout, 30*time.Second))
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	request.Header.Set("User-Agent", "fit")
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	client := *c.http()
	client.CheckRedirect = keepToken
	if method != http.MethodGet { // a redirect would make it one, whose answer says nothing of what was asked
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	response, err := client.Do(request)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &closer{response.Body, cancel}
	return response, nil
}

// keepToken takes the token out of a request that a redirect sends to another address: the port and
// the scheme count, too.
func keepToken(request *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("too many redirects")
	}
	if from := via[0].URL; request.URL.Host != from.Host || request.URL.Scheme != from.Scheme {
		request.Header.Del("Authorization")
	}
	return nil
}

func (c *Client) http() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 60 * time.Second
	return &http.Client{Transport: transport}
}

// closer ends the timeout of a request with its body.
type closer struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *closer) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// failure returns the error of an answer that is not a success, marked if another attempt may cure
// it.
func (c *Client) failure(response *http.Response, address string) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, errorBody)) // whatever there is helps
	_ = response.Body.Close()
	failed := &apiError{Status: response.StatusCode, Path: pathOf(address), Message: messageOf(body)}
	if pause, limited := c.rateLimit(response, failed.Message); limited {
		failed.LimitedFor = pause
		return retry.Later(failed, max(pause, time.Second))
	}
	if response.StatusCode >= 500 {
		return retry.Later(failed, retry.Unasked)
	}
	return failed
}

// rateLimit reports whether a request came too early, and how long to wait.
func (c *Client) rateLimit(response *http.Response, message string) (time.Duration, bool) {
	tooMany := response.StatusCode == http.StatusTooManyRequests
	if !tooMany && response.StatusCode != http.StatusForbidden {
		return 0, false
	}
	if pause := retry.Asked(response.Header, c.now()); pause >= 0 {
		return pause, true
	}
	if response.Header.Get("X-RateLimit-Remaining") == "0" {
		reset, err := strconv.ParseInt(response.Header.Get("X-RateLimit-Reset"), 10, 64)
		if err == nil {
			return time.Unix(reset, 0).Sub(c.now()), true
		}
	}
	if limited(message) {
		return secondaryPause, true
	}
	return 10 * time.Second, tooMany
}

// limited reports whether a message is about too many requests. Answers that have it may say so in
// no other way.
func limited(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{"rate limit", "abuse detection", "submitted too quickly"},
		func(words string) bool { return strings.Contains(message, words) })
}

// secondaryPause is how long to wait, at least, after a request for which there were too many
// others in a short time, where the answer does not say.
const secondaryPause = time.Minute

func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func pathOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return parsed.Path
}

func messageOf(body []byte) string {
	var answer struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return answer.Message
}
