package http

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/session"
)

// deployed is an agent of ours, of which every request is kept.
type deployed struct {
	URL string

	mu       sync.Mutex
	requests []string
}

func deploy(t *testing.T, handler nethttp.HandlerFunc) *deployed {
	t.Helper()
	d := &deployed{}
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		d.mu.Lock()
		asked := []string{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), string(body)}
		d.requests = append(d.requests, strings.Join(asked, " "))
		d.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

func (d *deployed) asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests
}

func config(t *testing.T, environ ...string) (agent.Config, *[]string) {
	t.Helper()
	lines := &[]string{}
	retries := 2
	return agent.Config{
		Name: "worker", Dir: t.TempDir(), Home: t.TempDir(), OneShot: true, Environ: environ, Retries: &retries,
		Events: func(event []byte) { *lines = append(*lines, string(event)) },
	}, lines
}

func ask(t *testing.T, ctx context.Context, entry Entry, cfg agent.Config, prompts ...string) agent.Result {
	t.Helper()
	if err := entry.Validate(); err != nil {
		t.Fatal(err)
	}
	conversation, err := New(entry).Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var result agent.Result
	for _, prompt := range prompts {
		if result, err = conversation.Prompt(ctx, prompt); err != nil {
			t.Fatal(err)
		}
	}
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
	return result
}

func TestAnAnswer(t *testing.T) {
	d := deploy(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		_, _ = io.WriteString(w, `{"reply":{"text":"Fixed."},"conversation":{"id":17},
			"usage":{"model":"m","in":100,"out":20,"cached":5,"usd":0.25}}`)
	})
	entry := Entry{
		ID: "bot", URL: d.URL + "/chat/{session}?m={model}",
		Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"},
		Body: map[string]any{
			"messages": []any{map[string]any{"role": "user", "content": "{prompt}"}},
			"id":       "{session}", "system": "{system}", "n": 1, "about": "({model})",
		},
		Answer: "reply.text", Session: "conversation.id",
		Usage: UsagePaths{
			Input: "usage.in", Output: "usage.out", CacheRead: "usage.cached", CostUSD: "usage.usd",
			Model: "usage.model",
		},
	}
	cfg, lines := config(t, "TOKEN=looks like nothing special")
	cfg.Model, cfg.SystemPrompt = "a b", "Be brief."
	info := New(entry).Info()
	if info.Capabilities.Resume != agent.Native || info.Capabilities.SystemPromptAppend != agent.Native ||
		info.Capabilities.Usage != agent.Native || strings.Join(info.Credentials, " ") != "TOKEN" {
		t.Errorf("%+v", info)
	}
	result := ask(t, t.Context(), entry, cfg, "Say \"hi\"\n", "again")
	u := result.Usage
	if !result.Success || result.Text != "Fixed." || result.SessionID != "17" || result.Turns != 1 ||
		u.InputTokens != 100 || u.OutputTokens != 20 || u.CacheReadTokens != 5 || u.CostUSD == nil ||
		*u.CostUSD != 0.25 {
		t.Errorf("%+v", result)
	}
	want := []string{
		`POST /chat/?m=a+b Bearer looks like nothing special {"about":"(a b)","id":null,"messages":[{"content":"Say \"hi\"\n","role":"user"}],"n":1,"system":"Be brief."}`,
		`POST /chat/17?m=a+b Bearer looks like nothing special {"about":"(a b)","id":"17","messages":[{"content":"again","role":"user"}],"n":1,"system":"Be brief."}`,
	}
	if strings.Join(d.asked(), "\n") != strings.Join(want, "\n") {
		t.Errorf("it was asked\n%s", strings.Join(d.asked(), "\n"))
	}
	told := strings.NewReader(strings.Join(*lines, "\n"))
	sessions, err := session.Read(told, New(entry).Dialects(), session.Options{})
	if err != nil || len(sessions) != 1 || sessions[0].Turns != 2 || sessions[0].FinalText != "Fixed." {
		t.Errorf("%+v, %v", sessions, err)
	}
}

// An address alone is enough for an agent that answers in the form that we ask in.
func TestSchemes(t *testing.T) {
	d := deploy(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		var asked struct{ Prompt, Session string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		_ = json.NewEncoder(w).Encode(map[string]any{"answer": asked.Prompt + asked.Session, "session": "s1"})
	})
	registry := agent.NewRegistry().WithSchemes(Schemes()...)
	a, err := registry.Get(d.URL)
	if err != nil || string(a.Info().ID) != d.URL {
		t.Fatalf("%v, %v", a, err)
	}
	cfg, _ := config(t)
	if result := ask(t, t.Context(), a.(*Agent).entry, cfg, "one", "two"); result.Text != "twos1" {
		t.Errorf("%+v", result)
	}
	_, err = registry.Get(d.URL + "?k=SECRET")
	if err == nil || !strings.Contains(err.Error(), "describe the agent in agents.yaml") {
		t.Errorf("a query that stays in the trace: %v", err)
	}
	_, err = registry.Get("http:nonsense")
	if err == nil || !strings.Contains(err.Error(), "not an http or https address") {
		t.Error(err)
	}
}

// What went wrong, and whose fault it is. No endpoint, however hostile, is anything but a clear
// outcome.
func TestFailures(t *testing.T) {
	elsewhere := deploy(t, status(200, `{"answer":"You came to another house."}`))
	for name, tt := range map[string]struct {
		handler  nethttp.HandlerFunc
		outcome  session.Outcome
		requests int
		message  string
	}{
		"bad key": {status(401, "no"), session.OutcomeAuth, 1, "status 401: no"},
		"busy":    {status(429, "slow down"), session.OutcomeProvider, 3, "slow down"},
		"broken":  {status(500, "oh"), session.OutcomeProvider, 3, "status 500"},
		"refused": {status(400, "bad field"), session.OutcomeError, 1, "bad field"},
		"moved": {func(w nethttp.ResponseWriter, r *nethttp.Request) {
			nethttp.Redirect(w, r, elsewhere.URL, nethttp.StatusTemporaryRedirect)
		}, session.OutcomeError, 1, "redirects are not followed"},
		"no JSON":     {status(200, "<html>"), session.OutcomeError, 1, "not JSON: <html>"},
		"no answer":   {status(200, `{"x":1}`), session.OutcomeError, 1, `there is no answer in the answer: {"x":1}`},
		"null answer": {status(200, `{"answer":null}`), session.OutcomeError, 1, "there is no answer"},
		"empty":       {status(200, `{"answer":" "}`), session.OutcomeError, 1, "there is no answer"},
		"drops": {func(nethttp.ResponseWriter, *nethttp.Request) {
			panic(nethttp.ErrAbortHandler)
		}, session.OutcomeProvider, 3, "no answer"},
		"flood": {func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			piece := bytes.Repeat([]byte("x"), 1<<20)
			for range maxReply>>20 + 2 {
				_, _ = w.Write(piece)
			}
		}, session.OutcomeError, 1, "longer than 16 MiB"},
		"events without end": {func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "data: {\"answer\":\"more\"}\n\n")
			}
		}, session.OutcomeError, 1, "longer than 16 MiB"},
		"a bomb": {func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			for piece := make([]byte, 1<<20); r.Context().Err() == nil; {
				_, _ = packed.Write(piece)
			}
		}, session.OutcomeError, 1, "longer than 16 MiB"},
		"hints without end": {func(w nethttp.ResponseWriter, r *nethttp.Request) {
			for r.Context().Err() == nil {
				w.Header().Set("Link", strings.Repeat("x", 1<<16))
				w.WriteHeader(nethttp.StatusEarlyHints)
			}
		}, session.OutcomeProvider, 3, "no answer"},
		"a header without end": {func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("X", strings.Repeat("x", 2*maxHeader))
		}, session.OutcomeProvider, 3, "no answer"},
		"less than was said": {func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"answer":"all"}`)
		}, session.OutcomeProvider, 3, "was cut off"},
		"deep": {status(200, `{"answer":`+strings.Repeat("[", 1<<20)), session.OutcomeError, 1, "not JSON"},
		"a long session": {
			status(200, `{"answer":"a","session":"`+strings.Repeat("s", 1<<20)+`"}`), session.OutcomeError, 1,
			"id of the session is longer than",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t, tt.handler)
			cfg, lines := config(t)
			entry := Entry{ID: "bot", URL: d.URL, Session: "session"}
			cfg.Installation = &agent.Installation{}
			conversation := newConversation(entry, cfg)
			conversation.sleep = func(context.Context, time.Duration) error { return nil }
			result, err := conversation.Prompt(t.Context(), "x")
			if err != nil || result.Success || result.Outcome != tt.outcome || result.Turns != 0 ||
				!strings.Contains(result.Err.Error(), tt.message) || len(d.asked()) != tt.requests {
				t.Errorf("%+v, %v, asked %d times", result, err, len(d.asked()))
			}
			if retried := strings.Count(strings.Join(*lines, "\n"), `"retrying":true`); retried != tt.requests-1 {
				t.Errorf("%d retries in the trace:\n%s", retried, strings.Join(*lines, "\n"))
			}
			if err := conversation.Close(); err != nil {
				t.Error(err)
			}
			if asked := elsewhere.asked(); len(asked) > 0 {
				t.Errorf("another address was asked: %q", asked)
			}
		})
	}
}

func status(code int, body string) nethttp.HandlerFunc {
	return func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// silent is an agent that never answers.
type silent struct{}

func (silent) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestASilentAgentIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := config(t)
		cfg.Installation = &agent.Installation{}
		conversation := newConversation(Entry{ID: "bot", URL: "http://bot/"}, cfg)
		conversation.client.Transport = silent{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result, err := conversation.Prompt(ctx, "x")
		if err != nil || result.Outcome != session.OutcomeTimeout || !result.Aborted {
			t.Errorf("%+v, %v", result, err)
		}
		result, err = conversation.Prompt(t.Context(), "x")
		if err == nil {
			t.Errorf("a conversation without a session went on: %+v", result)
		}
	})
}

func TestSecretsAreRedacted(t *testing.T) {
	const token = "looks like nothing special"
	d := deploy(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.WriteString(w, `{"answer":"you sent `+r.Header.Get("Authorization")+`"}`)
	})
	cfg := agenttest.Config(t, "", "1", "TOKEN="+token)
	entry := Entry{ID: "bot", URL: d.URL, Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}}
	agenttest.CheckRedaction(t, New(entry), cfg, "you sent Bearer", token)
}

func TestRefusals(t *testing.T) {
	cfg, _ := config(t)
	var auth *agent.AuthError
	entry := Entry{ID: "bot", URL: "http://bot/", Headers: map[string]string{"X": "${TOKEN}"}}
	if err := agent.Check(New(entry), cfg); !errors.As(err, &auth) || !strings.Contains(err.Error(), "needs TOKEN") {
		t.Error(err)
	}
	var refused *agent.CapabilityError
	if err := agent.Check(New(Entry{ID: "bot", URL: "http://bot/{model}"}), cfg); !errors.As(err, &refused) {
		t.Error(err)
	}
	cfg.MCPServers = []agent.MCPServer{{Name: "x"}}
	if err := agent.Check(New(Entry{ID: "bot", URL: "http://bot/"}), cfg); !errors.As(err, &refused) {
		t.Error(err)
	}
}
