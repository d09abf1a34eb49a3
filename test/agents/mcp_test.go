package agents

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/session"
)

type question struct {
	To       string `json:"to"`
	Question string `json:"question"`
}

// oracle is an MCP server that answers questions of whoever knows its token.
func oracle(t *testing.T, token string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server := mcp.NewServer(&mcp.Implementation{Name: "oracle", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name: "ask", Description: "Ask somebody.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	},
		func(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, any, error) {
			asked.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: q.To + " says yes to " +
				q.Question}}}, nil, nil
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

// oracleToken is what the oracle wants to be told.
const oracleToken = "s3cr3t-token"

// askIt is a prompt, and askBob what the model does about it.
const askIt = "Ask bob whether to ship it"

var askBob = []turn{
	{"calls": []turn{call("mcp", "oracle/ask", "input", turn{"to": "bob", "question": "ship it"})}},
	{"text": "Bob agrees."},
}

// attach gives the agent the tools of the oracle, with a token that may be wrong.
func (r *rig) attach(token string) (asked *atomic.Int64) {
	r.t.Helper()
	url, asked := oracle(r.t, oracleToken)
	r.config.MCPServers = []agent.MCPServer{{
		Name: "oracle", URL: url,
		Headers: map[string]string{"Authorization": "Bearer " + token},
	}}
	return asked
}

// checkAsked looks at how a prompt with the oracle went.
func checkAsked(t *testing.T, s *session.EnrichedSession, result agent.Result, asked *atomic.Int64) {
	t.Helper()
	if !result.Success || result.Text != "Bob agrees." || asked.Load() != 1 {
		t.Errorf("outcome %q, text %q, error %v; the oracle was asked %d times", result.Outcome, result.Text,
			result.Err, asked.Load())
	}
	checkMCPCall(t, s)
}

func checkMCPCall(t *testing.T, s *session.EnrichedSession) {
	t.Helper()
	id := ""
	for _, event := range s.Events {
		switch {
		case event.Tool != nil && strings.Contains(event.Tool.NativeName, "ask"):
			id = event.Tool.CallID
			if event.Tool.Canonical != session.ToolOther || !strings.Contains(string(event.Tool.Args), "ship it") {
				t.Errorf("the call: %+v, arguments %s", event.Tool, event.Tool.Args)
			}
		case event.Result != nil && event.Result.CallID == id && id != "":
			if event.Result.IsError || !strings.Contains(event.Result.Preview, "bob says yes to ship it") {
				t.Errorf("the result: %+v", event.Result)
			}
			return
		}
	}
	t.Error("the session shows no call of the tool with its result")
}

func TestMCPServerThatIsNotThere(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t, turn{"text": "Worked without my tools."}))
		r.attach("wrong")
		s, err := a.Start(t.Context(), r.config)
		if err != nil {
			return // refused before anything started
		}
		defer s.Close()
		if result, err := s.Prompt(t.Context(), "Ask bob"); err == nil && (result.Success || result.Err == nil) {
			t.Errorf("an agent without its tools must not go on: outcome %q, error %v", result.Outcome, result.Err)
		}
	})
}
