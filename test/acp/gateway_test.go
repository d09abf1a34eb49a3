package acp

import (
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/acp"
	"github.com/fit-eval/fit/agent/agenttest"
	"github.com/fit-eval/fit/gateway"
	"github.com/fit-eval/fit/gateway/calls"
)

// TestThroughTheGateway: what an agent asks its model is seen on the wire, and the key stays with
// the gateway. Gemini's protocol does not go through it, and the agent's start says so.
func TestThroughTheGateway(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		const key = "the-real-key-of-the-model"
		s := newStage(t, a, call("bash", "env"), agenttest.Says("Seen."))
		show(t, s)
		s.Config.Environ = append(s.Config.Environ, "OPENAI_API_KEY="+key, "ANTHROPIC_API_KEY="+key,
			"GEMINI_API_KEY="+key)
		var started agent.Started
		s.Config.Started = func(now agent.Started) { started = now }
		proxy := &gateway.OnDemand{}
		t.Cleanup(func() { _ = proxy.Close() })
		var mu sync.Mutex
		var seen []calls.Call
		s.Config.Gateway.Join = func(_ agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
			return proxy.Join(gateway.Member{Name: "worker", Upstreams: upstreams, OnCall: func(c calls.Call) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, c)
			}})
		}
		conversation, err := agent.Start(t.Context(), a, s.Config)
		if err != nil {
			t.Fatal(err)
		}
		result := s.Prompt(t.Context(), conversation, "Look around")
		if err := conversation.Close(); err != nil {
			t.Error(err)
		}
		s.CheckAlone()
		if !result.Success || result.Text != "Seen." {
			t.Errorf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
		}
		if a.Info().ID == "gemini" {
			if started.Gateway != agent.GatewayOff || !strings.Contains(started.GatewayReason, "Gemini") {
				t.Errorf("started as %+v", started)
			}
			return
		}
		if started.Gateway != agent.GatewayOn || started.KeyVisible {
			t.Errorf("started as %+v", started)
		}
		if printed := strings.Join(s.Events(), "\n"); strings.Contains(printed, key) {
			t.Error("a command of the agent sees the key")
		}
		_ = proxy.Close() // waits for the last call
		mu.Lock()
		defer mu.Unlock()
		counted := 0
		for _, c := range seen {
			if c.Outcome == calls.OK && c.Usage != nil && c.Usage.Input > 0 {
				counted++
			}
		}
		if counted < 2 {
			t.Errorf("%d calls with usage were seen on the wire, want at least 2: %+v", counted, seen)
		}
	})
}
