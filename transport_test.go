package fit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

// attached is an agent that keeps how it reaches the session's tools, and is interrupted in its
// first turn.
type attached struct {
	agent.Agent
	mu      sync.Mutex
	servers []agent.MCPServer
}

func (a *attached) Info() agent.Info {
	return agent.Info{ID: "attached", Capabilities: agent.Capabilities{
		MCP: agent.Native, Resume: agent.Native, MaxTurns: agent.Native, AllowedTools: agent.Native,
		DisallowedTools: agent.Native, SystemPromptAppend: agent.Native, SystemPromptReplace: agent.Native,
	}}
}

func (a *attached) Dialects() []session.Dialect { return nil }

func (a *attached) Start(_ context.Context, cfg agent.Config) (agent.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = append(a.servers, cfg.MCPServers[0])
	return attachedSession{}, nil
}

type attachedSession struct{}

func (attachedSession) ID() string   { return "" }
func (attachedSession) Close() error { return nil }
func (attachedSession) Prompt(context.Context, string) (agent.Result, error) {
	return agent.Result{}, errors.New("it was to be looked at only")
}

// TestAResumedSessionHasTheToolTransportItWasStartedWith resumes sessions with the wiring of
// somebody who knows nothing of how they were started.
func TestAResumedSessionHasTheToolTransportItWasStartedWith(t *testing.T) {
	for _, http := range []bool{false, true} {
		path, dir := filepath.Join(t.TempDir(), "trace.ndjson"), t.TempDir()
		output, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		played := &attached{}
		newAgent := func(AgentConfig) (agent.Agent, error) { return played, nil }
		ctx, cancel := context.WithCancel(t.Context())
		wiring := Wiring{Isolation: "none"}
		wiring.ToolServer.HTTP = http
		team, err := wiring.NewFacilitator(FacilitatorConfig{
			FacilitatorCwd: dir,
			AgentConfigs:   []AgentConfig{{Name: "p"}},
			NewAgent: func(cfg AgentConfig) (agent.Agent, error) {
				cancel() // as Ctrl-C would, before anything is done
				return newAgent(cfg)
			},
			Output:  output,
			Options: Options{HomeDir: t.TempDir()},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = team.Run(ctx, "go") // it is interrupted
		if err := output.Close(); err != nil {
			t.Fatal(err)
		}
		played.servers = nil
		_, _ = Wiring{}.Resume(t.Context(), path, ResumeConfig{NewAgent: newAgent}) // the agent refuses to work
		if len(played.servers) == 0 || (played.servers[0].URL != "") != http {
			t.Errorf("http %v: the tools are reached at %+v", http, played.servers)
		}
	}
}
