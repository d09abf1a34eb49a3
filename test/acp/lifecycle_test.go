package acp

import (
	"context"
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
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	return func() {
		_ = pipe.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if _, err := pipe.Read(make([]byte, 16)); err != nil {
			t.Errorf("the agent's command did not begin: %v", err)
		}
	}
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

// TestALife: a command is cancelled and leaves nothing behind, the conversation goes on after it
// and in a new process, where the agent can resume, and uses a tool of the team. It is started with
// a system prompt, and the token of the tool server is not in its stream.
func TestALife(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		s := newStage(t, a, agenttest.Bash(slow), agenttest.Says("Went on."),
			call("mcp", "oracle/ask", "input", turn{"question": "ship it"}), agenttest.Says("Yes it is."))
		show(t, s)
		url, asked := oracle(t, "s3cr3t-token")
		s.Config.MCPServers = []agent.MCPServer{{
			Name: "oracle", URL: url, Headers: map[string]string{"Authorization": "Bearer s3cr3t-token"},
		}}
		s.Config.SystemPrompt = "Always be POLITE-7."
		wait := begun(t, s.Config.Dir)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { wait(); cancel() }()
		first := s.Start()
		cancelled := s.Prompt(ctx, first, "Take your time")
		if cancelled.Success || !cancelled.Aborted || cancelled.Outcome != session.OutcomeCancelled {
			t.Errorf("cancelled: outcome %q, aborted %v, error %v", cancelled.Outcome, cancelled.Aborted,
				cancelled.Err)
		}
		again := s.Prompt(t.Context(), first, "Go on")
		if !again.Success || again.Text != "Went on." {
			t.Errorf("after the cancel: outcome %q, text %q, error %v", again.Outcome, again.Text, again.Err)
		}
		last := first
		if a.Info().Capabilities.Resume != agent.Unsupported {
			if err := first.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			s.CheckAlone()
			s.Config.Resume = again.SessionID
			last = s.Start()
		}
		resumed := s.Prompt(t.Context(), last, "Ask")
		if err := last.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		s.CheckAlone()
		if !resumed.Success || resumed.Text != "Yes it is." || resumed.SessionID != again.SessionID {
			t.Errorf("resumed: outcome %q, text %q, id %q, error %v", resumed.Outcome, resumed.Text,
				resumed.SessionID, resumed.Err)
		}
		if asked.Load() != 1 {
			t.Errorf("the oracle was asked %d times", asked.Load())
		}
		if told := s.Told(); !strings.Contains(told, "POLITE-7") || !strings.Contains(told, "yes to ship it") {
			t.Errorf("the model was not told the system prompt or the tool's answer")
		}
		if strings.Contains(strings.Join(s.Events(), "\n"), "s3cr3t-token") {
			t.Error("the stream has the token of the tool server")
		}
		// An agent that is slow is cancelled before it has reported the command that it runs.
		got := s.Session()
		if calls := counted(got, session.ToolBash); calls > 1 || got.Turns != 3+calls {
			t.Errorf("%d shell calls, %d turns", calls, got.Turns)
		}
	})
}

// TestCancelledInAnOpenPermission: the agent asks, and while nobody has answered the prompt is
// cancelled. Some agents wait for the answer before they stop.
func TestCancelledInAnOpenPermission(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		entry := a.Entry()
		entry.AsksForAll = true // at least for commands
		s := newStage(t, acp.New(entry), agenttest.Bash("touch made"), agenttest.Says("Went on."))
		show(t, s)
		s.Config.AllowedTools = []string{"Bash"}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.Watch(func(event string) {
			if strings.Contains(event, `"session/request_permission"`) {
				cancel()
			}
		})
		conversation := s.Start()
		result := s.Prompt(ctx, conversation, "Touch")
		if result.Success || !result.Aborted || result.Outcome != session.OutcomeCancelled {
			t.Errorf("outcome %q, aborted %v, error %v", result.Outcome, result.Aborted, result.Err)
		}
		if err := conversation.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		s.CheckAlone()
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
	})
}

// TestTheModelFails: an error of the service is never a failure of the agent, and nobody waits
// forever, whatever the agent itself does about it.
func TestTheModelFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script turn
		want   session.Outcome
	}{
		"429":    {faulty(turn{"status": 429, "message": "slow down"}), session.OutcomeProvider},
		"500":    {faulty(turn{"status": 500, "message": "broke"}), session.OutcomeProvider},
		"key":    {turn{"key": "the-right-one", "turns": []turn{{"text": "No."}}}, session.OutcomeAuth},
		"silent": {faulty(turn{"stream": "hang"}), session.OutcomeProvider},
	} {
		t.Run(name, func(t *testing.T) {
			eachAgent(t, func(t *testing.T, a *acp.Agent) {
				entry := a.Entry()
				entry.Silence = "5s"
				if test.want == session.OutcomeAuth {
					entry.Silence = "90s" // nobody tries that again, but the first answer may take its time
				}
				retries := 0
				s := newScripted(t, acp.New(entry), test.script)
				show(t, s)
				s.Config.Retries = &retries
				result := s.Prompt(t.Context(), s.Start(), "Do it")
				if result.Success || result.Aborted || result.Outcome != test.want || result.Err == nil {
					t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
				}
				if got := s.Session(); got.Outcome != test.want {
					t.Errorf("the trace says %q", got.Outcome)
				}
			})
		})
	}
}

// faulty is a script whose only turn fails every time.
func faulty(fault turn) turn { return turn{"turns": []turn{{"text": "No.", "fault": fault}}} }

// TestACutStreamIsTriedAgain: half an answer is not taken for all of it.
func TestACutStreamIsTriedAgain(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		entry := a.Entry()
		entry.Silence = "20s"
		s := newStage(t, acp.New(entry), turn{"text": "All of it.", "fault": turn{"stream": "cut", "times": 1}})
		show(t, s)
		result := s.Prompt(t.Context(), s.Start(), "Do it")
		if result.Success && !strings.Contains(result.Text, "All of it.") {
			t.Errorf("success with %q", result.Text)
		}
		if !result.Success && result.Err == nil {
			t.Errorf("outcome %q without a reason", result.Outcome)
		}
	})
}
