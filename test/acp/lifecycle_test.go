package acp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/agenttest"
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

// trouble is one of a model, and how the prompt that meets it ends.
type trouble struct {
	name  string
	fault turn
	want  session.Outcome
}

func (t trouble) prompt() string { return "Meet " + t.name }

// troubles are in the order in which they are met.
var troubles = []trouble{
	{"a bad key", turn{"status": 401, "message": "invalid API key"}, session.OutcomeAuth},
	{"429", turn{"status": 429, "message": "slow down"}, session.OutcomeProvider},
	{"500", turn{"status": 500, "message": "broke"}, session.OutcomeProvider},
	{"silence", turn{"stream": "hang"}, session.OutcomeProvider},
	{"a cut", turn{"stream": "cut", "times": 1}, session.OutcomeProvider},
}

// inTrouble is the second process. It asks before it does anything, and it is given up when it says
// nothing for several times as long as it has needed for an answer.
func inTrouble(t *testing.T, a *acp.Agent, s *agenttest.Stage, id string, pace time.Duration) {
	t.Helper()
	url, asked := oracle(t, token)
	s.Config.MCPServers = []agent.MCPServer{{
		Name: "oracle", URL: url, Headers: map[string]string{"Authorization": "Bearer " + token},
	}}
	resumes := a.Info().Capabilities.Resume != agent.Unsupported
	if resumes {
		s.Config.Resume = id
	}
	entry := a.Entry()
	entry.Silence = max(5*time.Second, 4*pace).String()
	entry.AsksForAll = true // at least for commands
	s.Config.DisallowedTools, s.Config.Retries = []string{"WebFetch"}, new(int)
	talk := s.StartAs(acp.New(entry))
	told := func() bool { return strings.Contains(s.Told(), "yes to ship it") }
	resumed := insist(t.Context(), s, talk, "Ask the oracle", func() bool { return false })
	for tries := 0; resumed.Success && !told() && tries < 10; tries++ { // given up between call and answer
		resumed = insist(t.Context(), s, talk, "Ask the oracle", func() bool { return false })
	}
	if !resumed.Success || resumed.Text != "Yes it is." || resumed.Turns > 2 || (resumed.SessionID == id) != resumes {
		t.Errorf("resumed: outcome %q, text %q, id %q, %d turns, error %v", resumed.Outcome, resumed.Text,
			resumed.SessionID, resumed.Turns, resumed.Err)
	}
	inPermission(t, s, talk)
	for _, trouble := range troubles {
		meet(t, s, talk, trouble)
	}
	killed(t, s, talk)
	if asked.Load() == 0 {
		t.Error("the oracle was not asked")
	}
	if !strings.Contains(s.Told(), politeness) || !told() {
		t.Errorf("the model was not told the system prompt or the tool's answer")
	}
	if strings.Contains(strings.Join(s.Events(), "\n"), token) {
		t.Error("the stream has the token of the tool server")
	}
}

// meet gives a prompt whose model fails: an error of the service is never a failure of the agent,
// nobody waits forever, whatever the agent itself does about it, and half an answer is not taken
// for all of it.
func meet(t *testing.T, s *agenttest.Stage, talk agent.Session, trouble trouble) {
	t.Helper()
	// An agent that knows at once that its key is bad says so, unless it was given up before.
	met := func() bool {
		return trouble.want == session.OutcomeProvider && strings.Contains(s.Told(), trouble.prompt())
	}
	result := insist(t.Context(), s, talk, trouble.prompt(), met)
	switch {
	case trouble.fault["times"] != nil && result.Success && strings.Contains(result.Text, "All of it."):
	case result.Success || result.Aborted || result.Outcome != trouble.want || result.Err == nil:
		t.Errorf("%s: outcome %q, text %q, error %v", trouble.name, result.Outcome, result.Text, result.Err)
	}
	if got := s.Session(); got.Outcome != result.Outcome {
		t.Errorf("%s: the trace says %q", trouble.name, got.Outcome)
	}
}

// insist gives a prompt again while the agent was given up for its silence before it came as far as
// it should: on a slow machine it needs more than one try.
func insist(ctx context.Context, s *agenttest.Stage, talk agent.Session, prompt string, reached func() bool,
) agent.Result {
	for {
		result := s.Prompt(ctx, talk, prompt)
		if reached() || !errors.Is(result.Err, acp.ErrSilent) {
			return result
		}
	}
}

// inPermission cancels a prompt whose agent asks whether it may run a command. Some agents wait for
// the answer before they stop.
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
	if !strings.Contains(strings.Join(s.Events(), "\n"), `"decision":"cancelled"`) {
		t.Error("the request was not answered")
	}
}

// killed ends the agent's own processes with SIGKILL while it runs a command. That is an end
// without a result, and nothing of it is alive, its shells neither.
func killed(t *testing.T, s *agenttest.Stage, talk agent.Session) {
	t.Helper()
	wait := begun(t, s.Config.Dir)
	var reached atomic.Bool
	go func() {
		wait()
		reached.Store(true)
		for _, pid := range s.Processes() {
			program, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if bytes.Contains(program, []byte("node_modules")) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with its parent
			}
		}
	}()
	result := insist(t.Context(), s, talk, "Be slow", reached.Load)
	if result.Success || result.Aborted || result.Outcome != session.OutcomeNoResult || result.Err == nil ||
		!strings.Contains(result.Err.Error(), "SIGKILL") {
		t.Errorf("killed: outcome %q, aborted %v, error %v", result.Outcome, result.Aborted, result.Err)
	}
	if err := talk.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.CheckAlone()
}
