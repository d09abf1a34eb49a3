package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/session"
)

// A program that is given an endpoint talks to it through the gateway, with a token in place of the
// key.
func TestAProgramGoesThroughTheGateway(t *testing.T) {
	var mu sync.Mutex
	var keys []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"type":"message","role":"assistant","content":[{"type":"text","text":"42"}],` +
			`"usage":{"input_tokens":10,"output_tokens":5}}`))
	}))
	defer upstream.Close()

	s := newStage(t, `env; curl -s "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" `+
		`-H 'content-type: application/json' -d '{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[]}'; `+
		`curl -s "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" `+
		`-H 'content-type: application/json' -d '{"model":"gpt-5","messages":[]}'`)
	s.config.Environ = append(s.config.Environ, "ANTHROPIC_API_KEY=real-anthropic", "OPENAI_API_KEY=real-openai",
		"ANTHROPIC_AUTH_TOKEN=real-token")
	s.config.ModelURL = upstream.URL
	var started agent.Started
	s.config.Started = func(now agent.Started) { started = now }
	var seen []calls.Call
	s.config.Called = func(c calls.Call) { seen = append(seen, c) }
	proxy := &gateway.OnDemand{}
	defer proxy.Close()
	s.config.Gateway.Join = func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		return proxy.Join(gateway.Member{Name: "worker", Upstreams: upstreams, OnCall: cfg.Called})
	}
	conversation, err := agent.Start(t.Context(), New(s.entry), s.config)
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversation.Prompt(t.Context(), "count")
	if err != nil || !result.Success || !strings.Contains(result.Text, "42") {
		t.Errorf("%+v, %v", result, err)
	}
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(result.Text, "real-") || started.Gateway != gateway.On || started.KeyVisible {
		t.Errorf("the program sees the key: %+v\n%s", started, result.Text)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(keys, " "); got != "real-anthropic Bearer real-openai" {
		t.Errorf("the model got the keys %q", got)
	}
	if len(seen) != 2 || seen[0].Usage == nil || seen[0].Usage.InputTokens != 10 {
		t.Errorf("%d calls were seen: %+v", len(seen), seen)
	}
}

// A call that nobody can price under a budget in dollars is refused, and the run is over, even if
// the program can do without the answer.
func TestACallWithoutAPriceEndsARunWithABudget(t *testing.T) {
	s := newStage(t, `curl -s "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" `+
		`-d '{"model":"nobody-knows","messages":[]}' > said; echo done`)
	s.config.Environ = append(s.config.Environ, "ANTHROPIC_API_KEY=real-anthropic")
	s.config.ModelURL = "http://127.0.0.1:1"
	account := gateway.NewAccount("this run", gateway.Budget{USD: 1}, nil)
	proxy := &gateway.OnDemand{}
	defer proxy.Close()
	s.config.Gateway.Join = func(_ agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		return proxy.Join(gateway.Member{Name: "worker", Upstreams: upstreams, Account: account})
	}
	conversation, err := agent.Start(t.Context(), New(s.entry), s.config)
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversation.Prompt(t.Context(), "count")
	if err != nil || result.Success || result.Outcome != session.OutcomeBudget || result.Err == nil ||
		!strings.Contains(result.Err.Error(), `model "nobody-knows" has none`) {
		t.Errorf("%+v, %v", result, err)
	}
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
}
