// Package githubtest is a GitHub on this machine, for tests: issues, discussions and workflows of
// one repository, with the webhooks, the REST endpoints and the GraphQL queries that fit uses, in
// the shapes that GitHub documents.
//
//	site := githubtest.Start(t, secret)
//	site.Hook(address)
//	on := site.Open("discussion", "Which licence?", "…", githubtest.Eve)
//	site.Say(on, "Take MIT.", githubtest.Eve)
package githubtest

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Repository is the one that there is, and Token the only one that it knows.
const (
	Repository = "Codertocat/Hello-World"
	Token      = "ghp_thisIsTheTokenOfTheTest0123456789abcd"
)

// User is an account.
type User struct {
	Login       string
	Bot         bool
	Association string
}

// Accounts: a maintainer, a stranger, and a bot.
var (
	Eve     = User{Login: "eve", Association: "MEMBER"}
	Mallory = User{Login: "mallory", Association: "NONE"}
	Robot   = User{Login: "dependabot[bot]", Bot: true, Association: "CONTRIBUTOR"}
)

// the account of the token
var self = User{Login: "fit-bridge[bot]", Bot: true, Association: "NONE"}

// Site is a GitHub.
type Site struct {
	t      *testing.T
	http   *httptest.Server
	secret string
	// Before and After are called before and after a request that writes takes effect; a status
	// other than 0 is the answer.
	Before, After func(r *http.Request) (status int, header http.Header, body string)

	mu         sync.Mutex
	hook       string
	subjects   []*Subject
	dispatched []Dispatch
	delivering sync.WaitGroup
	ending     chan struct{}
}

// Subject is an issue or a discussion.
type Subject struct {
	kind     string // issue or discussion
	number   int
	title    string
	text     *Comment
	comments []*Comment
	locked   bool
}

// Comment is a text that somebody wrote.
type Comment struct {
	id               int
	by               User
	body             string
	created, updated time.Time
	deleted          bool
}

// Dispatch is a workflow that was started.
type Dispatch struct {
	File, Ref string
	Inputs    map[string]string
}

// Start starts a site, which ends with the test.
func Start(t *testing.T, secret string) *Site {
	t.Helper()
	s := &Site{t: t, secret: secret, ending: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /repos/{owner}/{name}/issues/{number}/comments", s.writes(s.addIssueComment))
	mux.HandleFunc("GET /repos/{owner}/{name}/issues/{number}/comments", s.issueComments)
	mux.HandleFunc("POST /repos/{owner}/{name}/actions/workflows/{file}/dispatches", s.writes(s.dispatch))
	mux.HandleFunc("GET /repos/{owner}/{name}/actions/workflows/{file}/runs", s.runs)
	mux.HandleFunc("POST /graphql", s.graphQL)
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+Token {
			answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.http.Close() // nobody comments any more
		close(s.ending)
		s.delivering.Wait()
	})
	return s
}

// URL is the address of the API.
func (s *Site) URL() string { return s.http.URL }

// Hook says where webhooks are sent from now on.
func (s *Site) Hook(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = address
}

// Open opens an issue or a discussion. The webhook is delivered when it returns.
func (s *Site) Open(kind, title, body string, by User) *Subject {
	s.t.Helper()
	s.mu.Lock()
	on := &Subject{kind: kind, number: len(s.subjects) + 1, title: title, text: newComment(len(s.subjects)+1, body, by)}
	s.subjects = append(s.subjects, on)
	s.mu.Unlock()
	event, action := "issues", "opened"
	if kind == "discussion" {
		event, action = "discussion", "created"
	}
	s.Deliver(event, s.payload(on, nil, action))
	return on
}

// Say comments. The webhook is delivered when it returns.
func (s *Site) Say(on *Subject, body string, by User) *Comment {
	s.t.Helper()
	said := s.add(on, body, by)
	s.Deliver(on.event(), s.payload(on, said, "created"))
	return said
}

// Change edits a comment, or deletes it if it has no body left.
func (s *Site) Change(on *Subject, said *Comment, body string) {
	s.t.Helper()
	s.mu.Lock()
	said.updated = said.updated.Add(time.Second)
	action := "edited"
	if body == "" {
		said.deleted, action = true, "deleted"
	} else {
		said.body = body
	}
	s.mu.Unlock()
	s.Deliver(on.event(), s.payload(on, said, action))
}

// Lock locks a subject, or unlocks it: nobody can comment.
func (s *Site) Lock(on *Subject, locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on.locked = locked
}

func newComment(id int, body string, by User) *Comment {
	now := time.Now().UTC().Truncate(time.Second)
	return &Comment{id: id, by: by, body: body, created: now, updated: now}
}

func (s *Site) add(on *Subject, body string, by User) *Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := newComment(1000*on.number+len(on.comments), body, by)
	on.comments = append(on.comments, said)
	return said
}

// Comments are what the bridge wrote, without the first line, which readers do not see.
func (s *Site) Comments(on *Subject) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, said := range on.comments {
		if said.by == self {
			_, text, _ := strings.Cut(said.body, "\n")
			list = append(list, text)
		}
	}
	return list
}

// Payload is that of the webhook of a comment.
func (s *Site) Payload(on *Subject, said *Comment, action string) (event string, payload []byte) {
	return on.event(), s.payload(on, said, action)
}

// Dispatched are the workflows that were started.
func (s *Site) Dispatched() []Dispatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Dispatch(nil), s.dispatched...)
}

// Sign signs the payload of a webhook.
func Sign(secret string, payload []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(payload)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Deliver sends a webhook until it is taken: GitHub sends it once, and people press Redeliver.
func (s *Site) Deliver(event string, payload []byte) {
	for delivery := rand.Text(); ; {
		s.mu.Lock()
		hook := s.hook
		s.mu.Unlock()
		request, err := http.NewRequest(http.MethodPost, hook, bytes.NewReader(payload))
		if err != nil || hook == "" {
			return
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-GitHub-Event", event)
		request.Header.Set("X-GitHub-Delivery", delivery)
		request.Header.Set("X-Hub-Signature-256", Sign(s.secret, payload))
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if err == nil && response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-time.After(20 * time.Millisecond): // between two attempts
		case <-s.ending:
			return
		}
	}
}

func (on *Subject) event() string {
	if on.kind == "discussion" {
		return "discussion_comment"
	}
	return "issue_comment"
}

// writes wraps what changes the site.
func (s *Site) writes(apply func(r *http.Request, body []byte) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if s.hooked(w, r, s.Before) {
			return
		}
		status, said := apply(r, body)
		if !s.hooked(w, r, s.After) {
			answer(w, status, said)
		}
	}
}

func (s *Site) hooked(
	w http.ResponseWriter, r *http.Request, hook func(r *http.Request) (int, http.Header, string),
) bool {
	if hook == nil {
		return false
	}
	status, header, body := hook(r)
	if status == 0 {
		return false
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	return true
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func notFound() (int, any) { return http.StatusNotFound, map[string]any{"message": "Not Found"} }

// subject finds what a request is about, by its number or node ID.
func (s *Site) subject(kind, key string) *Subject {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, on := range s.subjects {
		if on.kind == kind && (key == on.node() || key == strconv.Itoa(on.number)) {
			return on
		}
	}
	return nil
}

func (on *Subject) node() string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "0%d:%s%d", len(on.kind), on.kind, on.number))
}

// comment is a comment of the token's account, whose webhook is delivered in its own time.
func (s *Site) comment(on *Subject, body string) *Comment {
	said := s.add(on, body, self)
	s.delivering.Go(func() { s.Deliver(on.event(), s.payload(on, said, "created")) })
	return said
}
