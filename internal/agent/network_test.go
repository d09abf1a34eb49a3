package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

// plain is an agent that runs one command per prompt.
type plain struct{ protocols []string }

func (p plain) Info() agent.Info { return agent.Info{ID: "plain", Protocols: p.protocols} }

func (plain) Probe(context.Context, agent.Host) (agent.Installation, error) {
	return agent.Installation{}, nil
}

func (plain) Dialects() []session.Dialect { return nil }

func (plain) Start(_ context.Context, cfg agent.Config) (agent.Session, error) {
	if cfg.Model == "broken" {
		return nil, errors.New("no such model")
	}
	return &conversing{cfg}, nil
}

type conversing struct{ cfg agent.Config }

func (c *conversing) Prompt(ctx context.Context, text string) (agent.Result, error) {
	var out bytes.Buffer
	_, err := sandbox.Local{}.Spawn(ctx, sandbox.SpawnSpec{
		Argv:      []string{"bash", "-c", text},
		Dir:       "/",
		Env:       []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Isolation: c.cfg.Isolation,
	}, &out, io.Discard)
	return agent.Result{Text: out.String()}, err
}

func (c *conversing) PromptOnce(ctx context.Context, _, text string) (agent.Result, error) {
	return c.Prompt(ctx, text)
}

func (*conversing) ID() string   { return "" }
func (*conversing) Close() error { return nil }

// answering is a door that says a word to whoever comes in.
func answering(port int, word string) agent.Door {
	return agent.Door{Port: port, Serve: func(listener net.Listener) error {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return err
			}
			_, _ = io.WriteString(conn, word)
			conn.Close()
		}
	}}
}

func TestAnAgentIsEnclosedWithItsDoors(t *testing.T) {
	needPrivateNetwork(t)
	cfg := agent.Config{
		Isolation: sandbox.Isolation{Kind: sandbox.IsolationBwrap},
		Network:   sandbox.NetworkModel,
		Doors:     []agent.Door{answering(4801, "first"), answering(4802, "second")},
	}
	one, err := agent.Start(t.Context(), plain{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Doors = []agent.Door{answering(4801, "another")}
	two, err := agent.Start(t.Context(), plain{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	ask := "for port in 4801 4802 4803; do cat </dev/tcp/127.0.0.1/$port || echo -n nobody; echo -n ' '; done 2>/dev/null"
	for _, c := range []struct {
		session agent.Session
		want    string
	}{{one, "first second nobody "}, {two, "another nobody nobody "}} {
		t.Run(c.want, func(t *testing.T) {
			if result, err := c.session.Prompt(t.Context(), ask); result.Text != c.want || err != nil {
				t.Errorf("it reaches %q, %v, want %q", result.Text, err, c.want)
			}
		})
	}
	if err := errors.Join(one.Close(), one.Close()); err != nil {
		t.Error(err)
	}
	if _, err := one.Prompt(t.Context(), "true"); err == nil {
		t.Error("the network of a session that is closed is still there")
	}
	if _, can := two.(interface {
		PromptOnce(context.Context, string, string) (agent.Result, error)
	}); !can {
		t.Error("what the session can do beyond others is hidden")
	}
	cfg.Model = "broken"
	if _, err := agent.Start(t.Context(), plain{}, cfg); err == nil {
		t.Error("an agent that does not start was started")
	}
	cfg.Model, cfg.Doors = "", []agent.Door{answering(4801, "x"), answering(4801, "y")}
	if _, err := agent.Start(t.Context(), plain{}, cfg); err == nil || !strings.Contains(err.Error(), "port 4801") {
		t.Errorf("two doors at one port: %v", err)
	}
}

// routed is an agent whose model calls go through a gateway.
type routed struct {
	plain
	upstream string
}

func (r routed) Upstreams(agent.Config) ([]gateway.Upstream, error) {
	return []gateway.Upstream{{Protocol: gateway.Anthropic, URL: r.upstream, Header: gateway.APIKey("the-key")}}, nil
}

// posting is a program that sends a model call with a token to a port and prints the status.
func posting(port int, token string) string {
	return fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d && printf 'POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n`+
		`X-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{"model":"m"} ' >&3 `+
		`&& head -n 1 <&3 | tr -d '\r\n'`, port, token)
}

// An agent that has got hold of another's token can use it on the machine's loopback, where all
// agents without a network of their own are, and nowhere else.
func TestTheTokenOfAnotherIsWorthNothingInANetworkOfOnesOwn(t *testing.T) {
	needPrivateNetwork(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	defer upstream.Close()
	proxy, err := gateway.Start(gateway.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}()
	var seats []*gateway.Seat
	join := func(_ agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		seat, err := proxy.Join(gateway.Member{Name: "one", Upstreams: upstreams})
		seats = append(seats, seat)
		return seat, err
	}
	start := func(isolation sandbox.Isolation) agent.Session {
		session, err := agent.Start(t.Context(), routed{upstream: upstream.URL}, agent.Config{
			Isolation: isolation, Network: sandbox.NetworkModel, Gateway: agent.Gateway{Join: join},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { session.Close() })
		return session
	}
	inside := start(sandbox.Isolation{Kind: sandbox.IsolationBwrap})
	outside := start(sandbox.Isolation{Kind: sandbox.IsolationBwrap, Network: true})
	own, other := seats[0], seats[1]
	for _, c := range []struct {
		name    string
		session agent.Session
		token   string
		want    string
	}{
		{"its own", inside, own.Token, "HTTP/1.1 200 OK"},
		{"another's", inside, other.Token, "HTTP/1.1 401 Unauthorized"},
		{"another's, on the machine's loopback", outside, own.Token, "HTTP/1.1 200 OK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := c.session.Prompt(t.Context(), posting(own.Port(), c.token))
			if result.Text != c.want || err != nil {
				t.Errorf("%s: %q, %v, want %q", c.name, result.Text, err, c.want)
			}
		})
	}
}

func needPrivateNetwork(t *testing.T) {
	t.Helper()
	testenv.NeedTool(t, "bash")
	if err := sandbox.PrivateNetworkWorks(t.Context()); err != nil {
		testenv.Missing(t, "private networks do not work here: %v", err)
	}
}

func TestNetworksThatAnAgentCannotWorkIn(t *testing.T) {
	closed := sandbox.Isolation{Kind: sandbox.IsolationBwrap}
	calls := plain{protocols: []string{"anthropic"}}
	by := routed{plain: calls}
	server := agent.MCPServer{Name: "web", URL: "http://x"}
	program := agent.MCPServer{Name: "web", Command: "x"}
	for name, c := range map[string]struct {
		agent agent.Agent
		path  string
		cfg   agent.Config
		want  string
	}{
		"host":               {calls, "/x", agent.Config{}, ""},
		"none, its own":      {calls, "/x", agent.Config{Isolation: closed, Network: "none"}, "could not call"},
		"none, fit's own":    {calls, "", agent.Config{Isolation: closed, Network: "none"}, ""},
		"none, no model":     {plain{}, "/x", agent.Config{Isolation: closed, Network: "none"}, ""},
		"model, no gateway":  {calls, "/x", agent.Config{Isolation: closed, Network: "model"}, "do not go through fit"},
		"model, by gateway":  {by, "/x", agent.Config{Isolation: closed, Network: "model"}, ""},
		"model, fit's own":   {calls, "", agent.Config{Isolation: closed, Network: "model"}, ""},
		"a server at an URL": {calls, "", agent.Config{MCPServers: []agent.MCPServer{server}}, ""},
		"model, it is off": {by, "/x", agent.Config{
			Isolation: closed, Network: "model", Gateway: agent.Gateway{Off: "it is late"},
		}, "do not go through fit: it is late"},
		"model, a server at an URL": {calls, "", agent.Config{
			Isolation: closed, Network: "model", MCPServers: []agent.MCPServer{server},
		}, "tool server web"},
		"model, a server's command": {calls, "", agent.Config{
			Isolation: closed, Network: "model", MCPServers: []agent.MCPServer{program},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Installation = &agent.Installation{Path: c.path}
			err := agent.CheckNetwork(c.agent, c.cfg)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		})
	}
}
