package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultBase is where the API is, unless an enterprise has its own.
const DefaultBase = "https://api.github.com"

// Client talks to the API for one repository.
type Client struct {
	Base       string // DefaultBase if empty
	Token      string
	Repository Repository
	// HTTP sends the requests; nil means a client of its own. Redirects lose the token when they
	// leave the host.
	HTTP *http.Client
	// Timeout bounds a request that asks for a list; a download may take as long as bytes keep
	// coming. 30 s if zero.
	Timeout time.Duration
	// MaxWait is how long to wait for a rate limit to pass before giving up; 2 min if zero.
	MaxWait time.Duration
	// Sleep waits; nil means the real clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now tells the time; nil means the real clock.
	Now func() time.Time
	// Note, if set, is told why something takes longer.
	Note func(text string)
}

const (
	attempts  = 5
	pageSize  = 100
	maxPages  = 10 // the API gives no more than a thousand runs to one question
	errorBody = 4 << 10
)

// Error is an answer of the API that is not a success.
type Error struct {
	Status  int
	Path    string
	Message string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("GitHub answered %d to %s", e.Status, e.Path)
	if e.Message != "" {
		text += ": " + e.Message
	}
	switch e.Status {
	case http.StatusUnauthorized:
		text += " (is the token still valid?)"
	case http.StatusForbidden, http.StatusNotFound:
		text += " (does the token have access to the actions of this repository?)"
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
	Size    int64  `json:"size_in_bytes"`
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
	err := c.pages(ctx, "actions/runs", values, func(body []byte) error {
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
		func(body []byte) error {
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
	response, err := c.get(ctx, c.url(fmt.Sprintf("actions/artifacts/%d/zip", artifact.ID), nil), false)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	n, err := io.Copy(w, io.LimitReader(response.Body, limit+1))
	if err != nil {
		return fmt.Errorf("download artifact %s: %w", artifact.Name, err)
	}
	if n > limit {
		return fmt.Errorf("artifact %s is larger than %d bytes", artifact.Name, limit)
	}
	return nil
}

func (c *Client) url(path string, values url.Values) string {
	base := c.Base
	if base == "" {
		base = DefaultBase
	}
	full := fmt.Sprintf("%s/repos/%s/%s/%s", strings.TrimSuffix(base, "/"), url.PathEscape(c.Repository.Owner),
		url.PathEscape(c.Repository.Name), path)
	if len(values) > 0 {
		full += "?" + values.Encode()
	}
	return full
}

// pages follows the links from page to page.
func (c *Client) pages(ctx context.Context, path string, values url.Values, take func(body []byte) error) error {
	next := c.url(path, values)
	for range maxPages {
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

// nextLink is the address of the next page, as long as it is on the same host: the token goes
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

// get asks until there is an answer worth having. The caller closes the body.
func (c *Client) get(ctx context.Context, address string, bounded bool) (*http.Response, error) {
	var last error
	for attempt := range attempts {
		response, err := c.once(ctx, address, bounded)
		if err == nil && response.StatusCode < 300 {
			return response, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		wait, retry, failure := c.judge(response, err, attempt, address)
		last = failure
		if !retry || attempt == attempts-1 {
			break
		}
		if c.Note != nil {
			c.Note(fmt.Sprintf("%v; trying again in %s", failure, wait.Round(time.Second)))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	return nil, last
}

func (c *Client) once(ctx context.Context, address string, bounded bool) (*http.Response, error) {
	cancel := context.CancelFunc(func() {})
	if bounded {
		timeout := c.Timeout
		if timeout == 0 {
			timeout = 30 * time.Second
		}
		ctx, cancel = context.WithTimeout(ctx, timeout)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	request.Header.Set("User-Agent", "fit-trace")
	response, err := c.http().Do(request)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &closer{response.Body, cancel}
	return response, nil
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

// judge decides what a failed request deserves.
func (c *Client) judge(response *http.Response, err error, attempt int, address string) (wait time.Duration, retry bool,
	failure error) {
	wait = time.Second << attempt
	if err != nil {
		return wait, true, fmt.Errorf("GitHub cannot be reached: %w", err)
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, errorBody)) // whatever there is helps
	_ = response.Body.Close()
	failed := &Error{Status: response.StatusCode, Path: pathOf(address), Message: messageOf(body)}
	if limited, until := c.rateLimit(response); limited {
		longest := c.MaxWait
		if longest == 0 {
			longest = 2 * time.Minute
		}
		if until > longest {
			return 0, false, errors.Join(failed,
				fmt.Errorf("the rate limit is used up for another %s", until.Round(time.Second)))
		}
		return max(until, time.Second), true, failed
	}
	return wait, response.StatusCode >= 500, failed
}

// rateLimit reports whether a request came too early, and how long to wait.
func (c *Client) rateLimit(response *http.Response) (bool, time.Duration) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusForbidden {
		return false, 0
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		return true, time.Duration(seconds) * time.Second
	}
	if response.Header.Get("X-RateLimit-Remaining") == "0" {
		reset, err := strconv.ParseInt(response.Header.Get("X-RateLimit-Reset"), 10, 64)
		if err == nil {
			return true, time.Unix(reset, 0).Sub(c.now())
		}
	}
	return response.StatusCode == http.StatusTooManyRequests, 10 * time.Second
}

func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
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
