package acp

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// realKey is the key that the model wants; behind the gateway, no agent sees it.
const realKey = "the-real-key-of-the-model"

// wire is what a gateway saw of an agent's calls.
type wire struct {
	proxy   *gateway.OnDemand
	started agent.Started

	mu   sync.Mutex
	seen []calls.Call
}

// throughGateway sends the calls of a stage's agent through a gateway, which alone has the key, and
// leaves the agent no other network. The keys of the project's .env are refused by the gateway.
func throughGateway(t *testing.T, s *agenttest.Stage) *wire {
	t.Helper()
	if err := sandbox.PrivateNetworkWorks(t.Context()); err != nil {
		testenv.Missing(t, "private networks do not work here: %v", err)
	}
	s.Config.Isolation = sandbox.Isolation{Kind: sandbox.IsolationBwrap, Writable: []string{s.Config.Dir}}
	s.Config.Network = sandbox.NetworkModel
	s.Write(".env", "OPENAI_API_KEY=theirs\nANTHROPIC_API_KEY=theirs\nGEMINI_API_KEY=theirs\n")
	w := &wire{proxy: &gateway.OnDemand{}}
	t.Cleanup(func() { _ = w.proxy.Close() })
	s.Config.Environ = append(s.Config.Environ, "OPENAI_API_KEY="+realKey, "ANTHROPIC_API_KEY="+realKey,
		"GEMINI_API_KEY="+realKey)
	s.Config.Started = func(now agent.Started) { w.started = now }
	s.Config.Gateway.Join = func(_ agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		return w.proxy.Join(gateway.Member{Name: "worker", Upstreams: upstreams, OnCall: func(c calls.Call) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, c)
		}})
	}
	return w
}

// check looks whether every turn was seen on the wire, and nothing of the key by the agent.
func (w *wire) check(t *testing.T, s *agenttest.Stage, turns int) {
	t.Helper()
	if w.started.Gateway != gateway.On || w.started.KeyVisible {
		t.Errorf("started as %+v", w.started)
	}
	if printed := strings.Join(s.Events(), "\n"); strings.Contains(printed, realKey) ||
		strings.Contains(s.File("seen.txt"), realKey) {
		t.Error("a command of the agent sees the key")
	}
	if seen := s.File("seen.txt"); !strings.HasPrefix(seen, "closed\n") {
		t.Errorf("the agent reaches more than its model: %s", seen)
	}
	_ = w.proxy.Close() // waits for the last call
	w.mu.Lock()
	defer w.mu.Unlock()
	counted := 0
	for _, c := range w.seen {
		if c.Outcome == calls.OK && c.Usage != nil && c.Usage.InputTokens > 0 {
			counted++
		}
	}
	if counted < turns {
		t.Errorf("%d calls with usage were seen on the wire, want at least %d: %+v", counted, turns, w.seen)
	}
}

// look is a command that tries to reach a service of the machine, and shows its environment.
func look(t *testing.T) string {
	t.Helper()
	outside, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outside.Close() })
	return fmt.Sprintf("make test; "+
		"(bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d' 2>/dev/null && echo open || echo closed; env) > seen.txt",
		outside.Addr().(*net.TCPAddr).Port)
}
