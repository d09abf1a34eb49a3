package agent_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
)

// plain is an agent that runs one command for every prompt.
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
	testenv.NeedTool(t, "bash")
	if found := sandbox.Detect(t.Context()); !found.PrivateNetwork.OK {
		testenv.Missing(t, "private networks do not work here: %s", found.PrivateNetwork.Detail)
	}
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
		if result, err := c.session.Prompt(t.Context(), ask); result.Text != c.want || err != nil {
			t.Errorf("it reaches %q, %v, want %q", result.Text, err, c.want)
		}
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

func TestNetworksThatAnAgentCannotWorkIn(t *testing.T) {
	outside := &agent.Installation{Path: "/usr/bin/agent"}
	inside := &agent.Installation{}
	closed, open := sandbox.Isolation{Kind: sandbox.IsolationBwrap}, sandbox.Isolation{}
	calls := plain{protocols: []string{"anthropic"}}
	for name, c := range map[string]struct {
		agent agent.Agent
		cfg   agent.Config
		want  string
	}{
		"host":               {calls, agent.Config{Installation: outside, Isolation: open}, ""},
		"none, its own":      {calls, agent.Config{Installation: outside, Isolation: closed, Network: "none"}, "could not call its model"},
		"none, fit's own":    {calls, agent.Config{Installation: inside, Isolation: closed, Network: "none"}, ""},
		"none, no model":     {plain{}, agent.Config{Installation: outside, Isolation: closed, Network: "none"}, ""},
		"model, fit's own":   {calls, agent.Config{Installation: inside, Isolation: closed, Network: "model"}, ""},
		"a server at an URL": {calls, agent.Config{Installation: inside, Isolation: closed, Network: "model", MCPServers: []agent.MCPServer{{Name: "web", URL: "http://x"}}}, "tool server web"},
		"a server's command": {calls, agent.Config{Installation: inside, Isolation: closed, Network: "model", MCPServers: []agent.MCPServer{{Name: "web", Command: "x"}}}, ""},
	} {
		err := agent.CheckNetwork(c.agent, c.cfg)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
