package acp

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/acp"
	"github.com/fit-eval/fit/agent/agenttest"
	"github.com/fit-eval/fit/session"
)

// slow says that it has begun through a pipe and then takes forever.
const slow = "echo begun > begun; while :; do sleep 1; done"

// begun waits until the agent's command runs.
func begun(t *testing.T, dir string) (wait func()) {
	t.Helper()
	path := filepath.Join(dir, "begun")
	_ = os.Remove(path) // of an earlier command
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() { _, _ = os.ReadFile(path) }
}

// oracle is an MCP server that answers whoever knows its token.
func oracle(t *testing.T, token string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	type question struct {
		Question string `json:"question"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "oracle", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name: "ask", Description: "Ask somebody.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, any, error) {
		asked.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "yes to " + q.Question}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL, asked
}

// TestTrouble: one process is cancelled in an open request for permission, before which some agents
// wait for the answer, and meets a model that fails: an error of the service is never a failure of
// the agent, nobody waits forever, whatever the agent itself does about it, and half an answer is
// not taken for all of it. In the end it is killed in the middle of a command, and nothing is left
// of it.
func TestTrouble(t *testing.T) {
	troubles := []struct {
		name  string
		fault turn
	}{
		{"429", turn{"status": 429, "message": "slow down"}},
		{"500", turn{"status": 500, "message": "broke"}},
		{"silent", turn{"stream": "hang"}},
		{"cut", turn{"stream": "cut", "times": 1}},
	}
	scenarios := []turn{
		{"name": "slow", "when": turn{"prompt": "Take your time"}, "turns": []turn{agenttest.Bash(slow)}},
	}
	for _, trouble := range slices.Backward(troubles) { // some agents repeat the prompts that were not answered
		scenarios = append(scenarios, turn{
			"name": trouble.name, "when": turn{"prompt": "Meet " + trouble.name},
			"turns": []turn{{"text": "All of it.", "fault": trouble.fault}},
		})
	}
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		entry := a.Entry()
		entry.Silence = "10s"
		entry.AsksForAll = true // at least for commands
		s := newScripted(t, acp.New(entry), turn{
			"scenarios": scenarios, "turns": []turn{agenttest.Bash("touch made"), agenttest.Says("Went on.")},
		})
		show(t, s)
		s.Config.AllowedTools, s.Config.Retries = []string{"Bash"}, new(int)
		talk := s.Start()
		inPermission(t, s, talk)
		for _, trouble := range troubles {
			prompt := "Meet " + trouble.name
			result := insist(t.Context(), s, talk, prompt, func() bool { return strings.Contains(s.Told(), prompt) })
			switch {
			case trouble.name == "cut" && result.Success && strings.Contains(result.Text, "All of it."):
			case result.Success || result.Aborted || result.Outcome != session.OutcomeProvider || result.Err == nil:
				t.Errorf("%s: outcome %q, text %q, error %v", trouble.name, result.Outcome, result.Text, result.Err)
			}
			if got := s.Session(); got.Outcome != result.Outcome {
				t.Errorf("%s: the trace says %q", trouble.name, got.Outcome)
			}
		}
		killed(t, s, talk)
	})
}

// insist gives a prompt again while the agent was given up for its silence before it came as far as
// it should: on a slow machine it needs more than one try.
func insist(ctx context.Context, s *agenttest.Stage, talk agent.Session, prompt string, reached func() bool,
) agent.Result {
	for {
		result := s.Prompt(ctx, talk, prompt)
		if reached() || result.Success || result.Aborted || result.Outcome != session.OutcomeProvider {
			return result
		}
	}
}

// inPermission cancels a prompt whose agent asks whether it may run a command.
func inPermission(t *testing.T, s *agenttest.Stage, talk agent.Session) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Watch(func(event string) {
		if strings.Contains(event, `"session/request_permission"`) {
			cancel()
		}
	})
	result := insist(ctx, s, talk, "Touch", func() bool { return ctx.Err() != nil })
	s.Watch(func(string) {})
	if result.Success || !result.Aborted || result.Outcome != session.OutcomeCancelled {
		t.Errorf("outcome %q, aborted %v, error %v", result.Outcome, result.Aborted, result.Err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.Config.Dir, "made")); len(files) > 0 {
		t.Error("the command was run")
	}
	answered := 0
	for _, event := range s.Events() {
		answered += strings.Count(event, `"decision":"cancelled"`)
	}
	if answered != 1 {
		t.Errorf("%d requests were answered", answered)
	}
}

// killed ends the agent's own processes with SIGKILL while it runs a command. That is an end
// without a result, and nothing of it is alive, its shells neither.
func killed(t *testing.T, s *agenttest.Stage, talk agent.Session) {
	t.Helper()
	wait := begun(t, s.Config.Dir)
	var runs atomic.Bool
	go func() {
		wait()
		runs.Store(true)
		for _, pid := range s.Processes() {
			program, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if bytes.Contains(program, []byte("node_modules")) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with its parent
			}
		}
	}()
	result := insist(t.Context(), s, talk, "Take your time", runs.Load)
	if result.Success || result.Aborted || result.Outcome != session.OutcomeNoResult || result.Err == nil ||
		!strings.Contains(result.Err.Error(), "SIGKILL") {
		t.Errorf("killed: outcome %q, aborted %v, error %v", result.Outcome, result.Aborted, result.Err)
	}
	if err := talk.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.CheckAlone()
}
