package view_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/view"
)

// forum is a bridge with its pages, whose runs leave a trace and do nothing.
type forum struct {
	t    *testing.T
	http *httptest.Server
	dir  string
	runs chan server.Job
}

func newForum(t *testing.T) *forum {
	t.Helper()
	f := &forum{t: t, dir: t.TempDir(), runs: make(chan server.Job, 10)}
	var pages http.Handler
	f.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages.ServeHTTP(w, r)
	}))
	traceOf := func(tenant, run string) string { return filepath.Join(f.dir, tenant, run, "trace.ndjson") }
	bridge, err := server.Open(server.Config{
		Dir:     f.dir,
		Address: f.http.URL,
		Dispatch: func(ctx context.Context, job server.Job) error {
			trace := traceOf(job.Tenant, job.Run)
			if err := os.MkdirAll(filepath.Dir(trace), 0o700); err != nil {
				return err
			}
			err := os.WriteFile(trace, []byte(`{"source":"orchestrator","seq":0,"event":{"type":"turn_start","agent":"lead"}}
{"source":"orchestrator","seq":1,"event":{"type":"agent_start","agent":"lead","runtime":"builtin"}}
`), 0o600)
			if err != nil {
				return err
			}
			f.runs <- job
			<-ctx.Done()
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- bridge.Serve(ctx) }()
	shown, err := view.NewThreadPages(view.Config{}, view.Bridge{Server: bridge, Address: f.http.URL, Trace: traceOf})
	if err != nil {
		t.Fatal(err)
	}
	pages = shown
	t.Cleanup(func() {
		cancel()
		if err := shown.Close(); err != nil {
			t.Error(err)
		}
		f.http.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// invite returns what the browser of a person sends: the cookie that it got for the person's token.
func (f *forum) invite(tenant, name string) http.Header {
	f.t.Helper()
	token, err := server.Invite(f.dir, tenant, name)
	if err != nil {
		f.t.Fatal(err)
	}
	f.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response := f.ask(nil, http.MethodGet, "/?token="+url.QueryEscape(token), "")
	cookie := response.Header.Get("Set-Cookie")
	if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/" ||
		!strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
		f.t.Fatalf("the address of a person: %d %v", response.StatusCode, response.Header)
	}
	value, _, _ := strings.Cut(cookie, ";")
	return http.Header{"Cookie": {value}, "Origin": {f.http.URL}, "Content-Type": {"application/json"}}
}

func (f *forum) ask(header http.Header, method, path, body string) *http.Response {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), method, f.http.URL+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header = header
	response, err := f.http.Client().Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// say posts, and returns the thread.
func (f *forum) say(who http.Header, path string) string {
	f.t.Helper()
	response := f.ask(who, http.MethodPost, path, `{"body":"Which licence?"}`)
	var posted server.Posted
	if err := json.NewDecoder(response.Body).Decode(&posted); err != nil || response.StatusCode != http.StatusOK {
		f.t.Fatalf("post: %d %v", response.StatusCode, err)
	}
	return posted.Thread
}

// TestThreadsAreShownToWhoHasAToken: of that tenant, to its own pages.
func TestThreadsAreShownToWhoHasAToken(t *testing.T) {
	f := newForum(t)
	eve, mallory := f.invite("default", "Eve"), f.invite("other", "Mallory")
	thread := f.say(eve, "/api/threads")
	run := (<-f.runs).Run
	change := func(header http.Header, name, value string) http.Header {
		header = header.Clone()
		if header.Del(name); value != "" {
			header.Set(name, value)
		}
		return header
	}
	members, trace := "/api/threads/"+thread+"/members", "/api/trace/overview?trace="+run
	for _, c := range []struct {
		name, method, path string
		who                http.Header
		status             int
	}{
		{"page", "GET", "/", eve, 200},
		{"thread", "GET", "/api/threads/" + thread, eve, 200},
		{"members", "GET", members, eve, 200},
		{"trace", "GET", trace, eve, 200},
		{"nobody's page", "GET", "/", nil, 401},
		{"nobody's script", "GET", "/app.js", nil, 401},
		{"nobody's thread", "GET", "/api/threads/" + thread, nil, 401},
		{"nobody's stream", "GET", "/api/events", nil, 401},
		{"wrong token", "GET", "/?token=x", eve, 401},
		{"wrong cookie", "GET", "/", change(eve, "Cookie", "fit-bridge-1=x"), 401},
		{"another tenant's thread", "GET", "/api/threads/" + thread, mallory, 404},
		{"another tenant's members", "GET", members, mallory, 404},
		{"another tenant's trace", "GET", trace, mallory, 404},
		{"file outside", "GET", "/api/trace/overview?trace=..%2F..%2Fdefault%2F" + run, mallory, 404},
		{"dots", "GET", "/api/trace/overview?trace=..", eve, 404},
		{"experiments", "GET", "/api/experiments", eve, 404},
		{"post of no page", "POST", "/api/threads", change(eve, "Origin", ""), 403},
		{"post of another page", "POST", "/api/threads", change(eve, "Origin", "http://evil.example"), 403},
		{"post of a form", "POST", "/api/threads", change(eve, "Content-Type", "text/plain"), 403},
		{"health", "GET", "/health", nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			response := f.ask(c.who, c.method, c.path, `{"body":"x"}`)
			if response.StatusCode != c.status {
				t.Errorf("%d, want %d", response.StatusCode, c.status)
			}
			if c.path == "/" && c.status == 200 && response.Header.Get("Content-Security-Policy") == "" {
				t.Error("the page may load anything")
			}
		})
	}
	content, err := io.ReadAll(f.ask(eve, http.MethodGet, members, "").Body)
	if err != nil || !strings.Contains(string(content), `"agent":"builtin"`) ||
		!strings.Contains(string(content), `"working":true`) {
		t.Errorf("members: %s %v", content, err)
	}
}

// TestAStreamNamesThreadsThatChange: those of its own tenant that are followed.
func TestAStreamNamesThreadsThatChange(t *testing.T) {
	f := newForum(t)
	eve, mallory := f.invite("default", "Eve"), f.invite("other", "Mallory")
	own, second, foreign := f.say(eve, "/api/threads"), f.say(eve, "/api/threads"), f.say(mallory, "/api/threads")
	for range 3 {
		<-f.runs
	}
	lines := bufio.NewScanner(f.ask(eve, http.MethodGet, "/api/events?list=0", "").Body)
	next := func(event, field string) string {
		for lines.Scan() {
			if lines.Text() != "event: "+event || !lines.Scan() {
				continue
			}
			var data map[string]string
			if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &data); err != nil {
				t.Fatal(err)
			}
			return data[field]
		}
		t.Fatalf("the stream ends: %v", lines.Err())
		return ""
	}
	stream := next("stream", "id")
	follow := func(threads ...string) {
		body, err := json.Marshal(map[string]any{"threads": threads})
		if err != nil {
			t.Fatal(err)
		}
		if status := f.ask(eve, http.MethodPost, "/api/events/"+stream, string(body)).StatusCode; status != 200 {
			t.Fatalf("follow: %d", status)
		}
	}
	check := func(what string, want ...string) {
		t.Helper()
		var got []string
		for range want {
			got = append(got, next("thread", "thread"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	follow(foreign, own)
	check("what is followed from now on", own)
	f.say(mallory, "/api/threads/"+foreign+"/posts")
	f.say(eve, "/api/threads/"+second+"/posts")
	f.say(eve, "/api/threads/"+own+"/posts")
	check("what changes", own)
	follow("*", own)
	check("the list", "*")
	f.say(eve, "/api/threads/"+second+"/posts")
	check("a list that changes", "*")
}
