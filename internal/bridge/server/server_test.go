package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a bridge over the wire, whose runs are the test.
type place struct {
	t     *testing.T
	cfg   server.Config
	http  *httptest.Server
	at    atomic.Pointer[server.Server]
	jobs  chan server.Job
	end   func()
	token string // of Eve
}

// open starts a bridge. Its runs are taken from jobs, and nothing holds them but the test.
func open(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, jobs: make(chan server.Job, 100)}
	p.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := p.at.Load(); at != nil {
			at.Handler().ServeHTTP(w, r)
			return
		}
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	t.Cleanup(p.http.Close)
	p.cfg = server.Config{
		Dir:     t.TempDir(),
		Address: p.http.URL,
		Dispatch: func(ctx context.Context, job server.Job) error {
			p.jobs <- job
			<-ctx.Done()
			return ctx.Err()
		},
		MaxRuns: 50,
	}
	p.start()
	t.Cleanup(func() { p.end() })
	p.token = p.invite("default", "Eve")
	return p
}

func (p *place) start() {
	p.t.Helper()
	at, err := server.Open(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- at.Serve(ctx) }()
	p.at.Store(at)
	p.end = func() {
		cancel()
		if err := <-served; err != nil {
			p.t.Error(err)
		}
		p.at.Store(nil)
		if err := at.Close(); err != nil {
			p.t.Error(err)
		}
		p.end = func() {}
	}
}

// restart ends the server and starts another one over the same directory.
func (p *place) restart() {
	p.t.Helper()
	p.end()
	p.start()
}

func (p *place) invite(tenant, name string) string {
	p.t.Helper()
	token, err := server.Invite(p.cfg.Dir, tenant, name)
	if err != nil {
		p.t.Fatal(err)
	}
	return token
}

// ask sends a request of a person and returns its status.
func (p *place) ask(token, method, path string, body, into any) (int, http.Header) {
	p.t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.http.URL+path, bytes.NewReader(content))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := p.http.Client().Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			p.t.Fatal(err)
		}
	}
	return response.StatusCode, response.Header
}

// say posts in a thread, or opens one, and returns the thread.
func (p *place) say(thread, text string) string {
	p.t.Helper()
	path := "/api/threads"
	if thread != "" {
		path += "/" + thread + "/posts"
	}
	var posted server.Posted
	status, _ := p.ask(p.token, http.MethodPost, path, server.Written{Body: text}, &posted)
	if status != http.StatusOK {
		p.t.Fatalf("post: %d", status)
	}
	return posted.Thread
}

func (p *place) act(thread, what string) {
	p.t.Helper()
	status, _ := p.ask(p.token, http.MethodPost, "/api/threads/"+thread+"/"+what, nil, nil)
	if status != http.StatusOK {
		p.t.Fatalf("%s: %d", what, status)
	}
}

func (p *place) view(thread string) server.View {
	p.t.Helper()
	var view server.View
	if status, _ := p.ask(p.token, http.MethodGet, "/api/threads/"+thread, nil, &view); status != http.StatusOK {
		p.t.Fatalf("thread: %d", status)
	}
	return view
}

// posts returns the bodies of a role's posts.
func (p *place) posts(thread string, roles ...string) []string {
	p.t.Helper()
	var bodies []string
	for _, post := range p.view(thread).Posts {
		for _, role := range roles {
			if post.Role == role {
				bodies = append(bodies, post.Body)
			}
		}
	}
	return bodies
}

// run is the next run that the bridge starts.
func (p *place) run() run {
	p.t.Helper()
	select {
	case job := <-p.jobs:
		return run{p, job}
	case <-time.After(2 * time.Minute):
		p.t.Fatal("no run was started")
		panic("unreachable")
	}
}

// idle checks that no run was started. What could start one has been answered before.
func (p *place) idle() {
	p.t.Helper()
	select {
	case job := <-p.jobs:
		p.t.Fatalf("a run was started: %q", job.Task)
	default:
	}
	for _, t := range p.all() {
		for _, r := range t.Runs {
			if r.State != "ended" {
				p.t.Fatalf("a run is %s", r.State)
			}
		}
	}
}

func (p *place) all() []server.Thread {
	p.t.Helper()
	var all struct{ Threads []server.Thread }
	p.ask(p.token, http.MethodGet, "/api/threads", nil, &all)
	return all.Threads
}

// run speaks as a run does.
type run struct {
	p   *place
	job server.Job
}

func (r run) client() bridge.Client {
	return bridge.Client{URL: r.job.CallbackURL, CorrelationID: r.job.Run, HTTP: r.p.http.Client(), Attempts: 1}
}

func (r run) finish(end bridge.Terminal) error {
	return r.client().PostTerminal(r.p.t.Context(), end)
}

func (r run) ends(end bridge.Terminal) {
	r.p.t.Helper()
	if err := r.finish(end); err != nil {
		r.p.t.Fatal(err)
	}
}

func (r run) reply(seqs ...int64) {
	r.p.t.Helper()
	sender := bridge.NewSender(r.client())
	defer sender.Close()
	for _, seq := range seqs {
		sender.Send(harness.Reply{
			Body:  fmt.Sprintf("%s says %d", r.job.Task, seq),
			Agent: "alice",
			Kind:  harness.ReplyReply,
			Seq:   seq,
		})
	}
	if unsent := sender.Flush(r.p.t.Context()); len(unsent) > 0 {
		r.p.t.Fatalf("not posted: %v, %v", unsent, sender.Err())
	}
}

func (r run) inbox(after int64) []harness.HumanMessage {
	r.p.t.Helper()
	poller := bridge.Poller{URL: r.job.InboxURL, HTTP: r.p.http.Client(), Backoff: time.Millisecond}
	messages, err := poller.Receive(r.p.t.Context(), after)
	if err != nil {
		r.p.t.Fatal(err)
	}
	return messages
}

func recess(t harness.Trigger) bridge.Terminal {
	return bridge.Terminal{
		Verdict:      harness.VerdictRecessed,
		Summary:      "People must choose.",
		LastActedSeq: -1,
		Trigger:      &t,
		Resume: &harness.ResumeContext{
			Reason:   "People must choose.",
			Replies:  []harness.Reply{{Body: "MIT", Agent: "alice", Seq: 3}},
			Sessions: map[string]string{"lead": "conversation-1"},
		},
	}
}

var adjourned = bridge.Terminal{Verdict: harness.VerdictAdjourned, Summary: "Done.", Outcome: "MIT", LastActedSeq: -1}

func check(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
