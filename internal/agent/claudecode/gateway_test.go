package claudecode

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
)

// TestTheLoginOfAPlanPassesThroughTheGateway: the real program sends it to the base URL, and the
// vendor gets it as it was, without the token.
func TestTheLoginOfAPlanPassesThroughTheGateway(t *testing.T) {
	t.Parallel()
	const login = "sk-ant-oat01-not-a-real-login"
	stage := agenttest.NewStage(t, New(), "claude-sonnet-4-5", agenttest.Says("Hello."))
	model, err := url.Parse(stage.Config.ModelURL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []http.Header
	passOn := httputil.NewSingleHostReverseProxy(model)
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Header.Clone())
		mu.Unlock()
		passOn.ServeHTTP(w, r)
	}))
	defer vendor.Close()
	proxy := &gateway.OnDemand{}
	defer proxy.Close()
	cfg := stage.Config
	cfg.ModelURL = ""
	cfg.Environ = append(cfg.Environ, oauthVariable+"="+login, keyVariable+"=sk-ant-a-key-that-is-not-asked-for")
	var told agent.Started
	cfg.Started = func(started agent.Started) { told = started }
	cfg.Gateway.Join = func(_ agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		if len(upstreams) != 1 || upstreams[0].URL != "https://api.anthropic.com/v1" || upstreams[0].Header != nil {
			t.Errorf("the upstreams are %+v", upstreams)
		}
		upstreams[0].URL = vendor.URL + "/v1"
		return proxy.Join(gateway.Member{Name: cfg.Name, Upstreams: upstreams})
	}
	conversation, err := agent.Start(t.Context(), New(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	result := stage.Prompt(t.Context(), conversation, "Say hello")
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
	if !result.Success || result.Text != "Hello." {
		t.Errorf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
	}
	if told.Gateway != gateway.On || told.Auth != agent.AuthSubscription || !told.KeyVisible {
		t.Errorf("started as %+v", told)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) == 0 {
		t.Fatal("nothing went through the gateway")
	}
	for _, header := range got {
		if header.Get("Authorization") != "Bearer "+login || header.Get("X-Api-Key") != "" ||
			header.Get(gateway.TokenHeader) != "" {
			t.Errorf("the vendor got %v", header)
		}
	}
}
