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

	"github.com/fit-eval/fit/internal/retry"
)

// LongestComment is how many characters a comment has at most.
const LongestComment = 65536

// Subject is an issue, a pull request or a discussion.
type Subject struct {
	Number int
	// Discussion is the node ID of a discussion; it is empty for the others.
	Discussion string
}

// Comment writes a comment, once.
func (c *Client) Comment(ctx context.Context, on Subject, body string) error {
	if on.Discussion == "" {
		return c.write(ctx, c.url(fmt.Sprintf("issues/%d/comments", on.Number), nil), map[string]string{"body": body})
	}
	return c.graphQL(ctx, `mutation($subject: ID!, $body: String!) {
		addDiscussionComment(input: {discussionId: $subject, body: $body}) { comment { id } } }`,
		map[string]any{"subject": on.Discussion, "body": body}, nil)
}

// commentPages bounds the pages of comments that are read.
const commentPages = 100

// HasComment reports whether there is a comment that begins with a text, among those written since
// a time.
func (c *Client) HasComment(ctx context.Context, on Subject, since time.Time, begins string) (bool, error) {
	if on.Discussion != "" {
		return c.hasDiscussionComment(ctx, on.Discussion, since, begins)
	}
	found := false
	values := url.Values{"per_page": {strconv.Itoa(pageSize)}, "since": {since.UTC().Format(time.RFC3339)}}
	err := c.pages(ctx, fmt.Sprintf("issues/%d/comments", on.Number), values, commentPages, func(body []byte) error {
		var page []struct{ Body string }
		err := json.Unmarshal(body, &page)
		for _, comment := range page {
			found = found || strings.HasPrefix(comment.Body, begins)
		}
		return err
	})
	return found, err
}

// hasDiscussionComment reads the comments of a discussion from the last one back.
func (c *Client) hasDiscussionComment(ctx context.Context, id string, since time.Time, begins string) (bool, error) {
	var before *string
	for range commentPages {
		var answer struct {
			Node *struct {
				Comments struct {
					Nodes []struct {
						Body      string
						CreatedAt time.Time
					}
					PageInfo struct {
						HasPreviousPage bool
						StartCursor     string
					}
				}
			}
		}
		err := c.graphQL(ctx, `query($subject: ID!, $before: String) { node(id: $subject) { ... on Discussion {
			comments(last: 100, before: $before) {
				nodes { body createdAt } pageInfo { hasPreviousPage startCursor } } } } }`,
			map[string]any{"subject": id, "before": before}, &answer)
		if err != nil {
			return false, err
		}
		if answer.Node == nil {
			return false, &apiError{Status: http.StatusNotFound, Path: "/graphql", Message: "the discussion is gone"}
		}
		comments := answer.Node.Comments
		for _, comment := range comments.Nodes {
			if strings.HasPrefix(comment.Body, begins) {
				return true, nil
			}
		}
		if !comments.PageInfo.HasPreviousPage || len(comments.Nodes) == 0 || comments.Nodes[0].CreatedAt.Before(since) {
			return false, nil
		}
		before = &comments.PageInfo.StartCursor
	}
	return false, nil
}

// DispatchWorkflow starts a workflow, named by its file, on a branch or tag, once.
func (c *Client) DispatchWorkflow(ctx context.Context, file, ref string, inputs map[string]string) error {
	address := c.url("actions/workflows/"+url.PathEscape(file)+"/dispatches", nil)
	return c.write(ctx, address, map[string]any{"ref": ref, "inputs": inputs})
}

// HasRun reports whether there is a run of a workflow, created since a time, whose title has a
// text.
func (c *Client) HasRun(ctx context.Context, file, text string, since time.Time) (bool, error) {
	found := false
	values := url.Values{
		"per_page": {strconv.Itoa(pageSize)}, "event": {"workflow_dispatch"},
		"created": {">=" + since.UTC().Format(time.RFC3339)},
	}
	path := "actions/workflows/" + url.PathEscape(file) + "/runs"
	err := c.pages(ctx, path, values, maxPages, func(body []byte) error {
		var page struct {
			Runs []struct {
				Title string `json:"display_title"`
			} `json:"workflow_runs"`
		}
		err := json.Unmarshal(body, &page)
		for _, run := range page.Runs {
			found = found || strings.Contains(run.Title, text)
		}
		return err
	})
	return found, err
}

// Later reports whether another attempt may cure an error of a request that is sent once, how long
// GitHub asks to wait, and whether the request certainly had no effect.
func Later(err error) (pause time.Duration, later, untouched bool) {
	failed, answered := errors.AsType[*apiError](err)
	pause, later = retry.MayPass(err)
	return max(pause, 0), later, answered && failed.Status < 500
}

// write sends a request that changes something, once.
func (c *Client) write(ctx context.Context, address string, content any) error {
	_, err := c.post(ctx, address, content)
	return err
}

func (c *Client) post(ctx context.Context, address string, content any) ([]byte, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	response, err := c.once(ctx, http.MethodPost, address, data, true)
	if err != nil {
		return nil, retry.Later(fmt.Errorf("GitHub cannot be reached: %w", err), retry.Unasked)
	}
	if response.StatusCode >= 300 {
		return nil, c.failure(response, address)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return nil, retry.Later(fmt.Errorf("GitHub's answer: %w", err), retry.Unasked)
	}
	return answer, nil
}

// graphQLError is one of the errors of an answer, whose status is 200.
type graphQLError struct{ Type, Message string }

// statuses are those that REST has for the same failures. What is not listed may pass.
var statuses = map[string]int{
	"RATE_LIMITED":  http.StatusTooManyRequests,
	"NOT_FOUND":     http.StatusNotFound,
	"FORBIDDEN":     http.StatusForbidden,
	"UNPROCESSABLE": http.StatusUnprocessableEntity,
}

func (c *Client) graphQL(ctx context.Context, query string, variables map[string]any, into any) error {
	base := strings.TrimSuffix(strings.TrimSuffix(c.base(), "/v3"), "/") // that of an enterprise ends with /api/v3
	answer, err := c.post(ctx, base+"/graphql", map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	var said struct {
		Data   json.RawMessage
		Errors []graphQLError
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return retry.Later(fmt.Errorf("GitHub's answer to /graphql: %w", err), retry.Unasked)
	}
	if len(said.Errors) > 0 {
		return said.Errors[0].failure()
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(said.Data, into)
}

func (e graphQLError) failure() error {
	failed := &apiError{Status: statuses[e.Type], Path: "/graphql", Message: e.Message}
	if limited(e.Message) {
		failed.Status = http.StatusTooManyRequests
	}
	switch failed.Status {
	case 0:
		failed.Status = http.StatusBadGateway
		return retry.Later(failed, retry.Unasked)
	case http.StatusTooManyRequests:
		failed.LimitedFor = secondaryPause
		return retry.Later(failed, secondaryPause)
	}
	return failed
}
