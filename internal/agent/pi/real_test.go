package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/session"
)

// The tests here drive the real program against the scripted model, for what is this agent's own;
// what all agents share is tested in test/agents.

type turn = agenttest.Turn

func newStage(t *testing.T, turns ...turn) *agenttest.Stage {
	t.Helper()
	return agenttest.NewStage(t, New(), "scripted-model", turns...)
}

// resultsOf are what came back from tools, by the name of the tool.
func resultsOf(s *session.EnrichedSession) map[string]*session.ToolResult {
	names, results := map[string]string{}, map[string]*session.ToolResult{}
	for _, event := range s.Events {
		if event.Tool != nil {
			names[event.Tool.CallID] = event.Tool.NativeName
		}
		if event.Result != nil {
			results[names[event.Result.CallID]] = event.Result
		}
	}
	return results
}

// TestEveryProtocol: each with its own model, and with a list of tools in a repository that tries
// to have a say.
func TestEveryProtocol(t *testing.T) {
	for model, path := range map[string]string{
		"claude-sonnet-4-5": "/v1/messages", "gpt-5.5": "/v1/responses",
		"something-else": "/v1/chat/completions",
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, agenttest.Bash("echo hello"), agenttest.Says("Done."))
			s.Config.Model = model
			s.Config.AllowedTools, s.Config.DisallowedTools = []string{"read", "bash", "edit"}, []string{"edit"}
			s.Config.Context = agent.ContextNone
			for name, content := range smuggled {
				s.Write(name, content)
			}
			result := s.Prompt(t.Context(), s.Start(), "Say hello")
			if !result.Success || result.Text != "Done." || result.Usage.InputTokens != 2000 ||
				result.Usage.CostUSD != nil {
				t.Errorf("outcome %q, text %q, usage %+v, error %v", result.Outcome, result.Text, result.Usage,
					result.Err)
			}
			for _, request := range s.Requests() {
				if request.Path != path {
					t.Errorf("asked at %s", request.Path)
				}
				if got := offered(t, request); got != "bash read" {
					t.Errorf("tools offered: %s", got)
				}
			}
			if asked := len(s.Requests()); asked != 2 {
				t.Errorf("the model was asked %d times", asked)
			}
			if strings.Contains(s.Told(), "SMUGGLED") {
				t.Error("the repository's words reached the model")
			}
			if _, err := os.Stat(filepath.Join(s.Config.Dir, "loaded")); err == nil {
				t.Error("the repository's extension was loaded")
			}
			checkRecord(t, result)
		})
	}
}

// smuggled is what a repository may bring along; with context none pi reads nothing of it.
var smuggled = map[string]string{
	".pi/settings.json": `{"shellCommandPrefix": "touch loaded; echo SMUGGLED;", "defaultModel": "x",
		"enabledModels": ["x"], "npmCommand": ["touch", "loaded"], "packages": ["npm:x"]}`,
	".pi/SYSTEM.md": "SMUGGLED", ".pi/APPEND_SYSTEM.md": "SMUGGLED", "AGENTS.md": "SMUGGLED", "CLAUDE.md": "SMUGGLED",
	".pi/skills/s/SKILL.md":  "---\nname: s\ndescription: SMUGGLED\n---\n",
	".pi/extensions/evil.ts": `import { writeFileSync } from "node:fs"; export default () => writeFileSync("loaded", "");`,
}

// TestTheProjectHasASayInTextsOnly: a working directory's instructions stand where the program
// itself puts them, its settings never count, and its extension is loaded only where programs of
// the project may run. The caller's settings count, and so does the effort.
func TestTheProjectHasASayInTextsOnly(t *testing.T) {
	for name, programs := range map[string]bool{"texts": false, "programs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, agenttest.Bash("echo hello"), agenttest.Says("Done."))
			for name, content := range smuggled {
				s.Write(name, content)
			}
			s.Write("AGENTS.md", "Be brief.")
			s.Config.Settings = filepath.Join(t.TempDir(), "settings.json")
			if err := os.WriteFile(s.Config.Settings, []byte(`{"shellCommandPrefix": "echo chosen"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			s.Config.SystemPrompt, s.Config.ProjectPrograms, s.Config.Effort = "Be kind.", programs, "low"
			s.Config.Model = "gpt-5.5"
			if result := s.Run("Say hello")[0]; !result.Success {
				t.Fatalf("outcome %q, error %v", result.Outcome, result.Err)
			}
			want := `\n\nBe kind.\n\n# Project Context\n\nProject-specific instructions and guidelines:\n\n## ` +
				s.Config.Dir + `/AGENTS.md\n\nBe brief.\n\n\n\nThe following skills`
			for _, text := range []string{want, `"effort":"low"`, "<name>s</name>", `chosen\nhello`} {
				if !strings.Contains(s.Told(), text) {
					t.Errorf("the model was not told %q:\n%s", text, s.Told())
				}
			}
			if strings.Contains(strings.ReplaceAll(s.Told(), "<description>SMUGGLED", ""), "SMUGGLED") {
				t.Errorf("the repository decided more than texts:\n%s", s.Told())
			}
			if _, err := os.Stat(filepath.Join(s.Config.Dir, "loaded")); (err == nil) != programs {
				t.Errorf("the extension was loaded: %v", err == nil)
			}
		})
	}
}

// offered are the names of the tools of a request, in order.
func offered(t *testing.T, request agenttest.Request) string {
	t.Helper()
	var body struct {
		Tools []struct {
			Name     string
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(request.Body), &body); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range body.Tools {
		names = append(names, tool.Name+tool.Function.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// checkRecord looks at what the program itself has written down of two turns.
func checkRecord(t *testing.T, result agent.Result) {
	t.Helper()
	if result.Output.DiskJSONLPath == "" {
		t.Fatal("the program's own record was not found")
	}
	sessions, err := session.ReadFile(result.Output.DiskJSONLPath, New().Dialects(), session.Options{})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions on record, %v", len(sessions), err)
	}
	if d := sessions[0]; d.Dialect != diskDialectName || d.SessionID != result.SessionID ||
		d.Outcome != session.OutcomeSuccess || d.Turns != 2 {
		t.Errorf("on record: dialect %q, id %q, outcome %q, %d turns", d.Dialect, d.SessionID, d.Outcome, d.Turns)
	}
}

func TestLimitsHoldAfterARetry(t *testing.T) {
	t.Parallel()
	step := agenttest.Bash("echo x >> steps")
	failing := turn{"calls": []turn{{"bash": "echo x >> steps"}}, "fault": turn{"status": 503, "times": 1}}
	s := newStage(t, failing, step, step, step, step)
	s.Config.OneShot, s.Config.MaxTurns = false, 2
	result := s.Prompt(t.Context(), s.Start(), "Count")
	if result.Outcome != session.OutcomeMaxTurns {
		t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
	}
	if steps := s.File("steps"); steps != "x\nx\n" {
		t.Errorf("steps %q", steps)
	}
	if asked := len(s.Requests()); asked != 3 {
		t.Errorf("the model was asked %d times, want 3: a failure and two turns", asked)
	}
}

// In a process for one prompt the same happens, as test/agents shows.
func TestWhyItDidNotStartIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, agenttest.Says("Never said."))
	s.Config.OneShot = false
	s.Config.MCPServers = []agent.MCPServer{{Name: "gone", URL: "http://127.0.0.1:1/mcp"}}
	result := s.Prompt(t.Context(), s.Start(), "Hello")
	if result.Success || result.Err == nil ||
		!strings.Contains(result.Err.Error(), "MCP server gone is not connected") {
		t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
	}
	if len(s.Requests()) > 0 {
		t.Error("the model was asked")
	}
}

type words struct {
	Say string `json:"say"`
}

// tools are the tools of both servers below.
func tools(called chan<- string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Say it again."},
		func(_ context.Context, _ *mcp.CallToolRequest, w words) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "echo: " + w.Say}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fail", Description: "Fail."},
		func(context.Context, *mcp.CallToolRequest, words) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("on purpose")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "block", Description: "Wait forever."},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ words) (*mcp.CallToolResult, any, error) {
			called <- "begun"
			<-ctx.Done()
			called <- "cancelled"
			return nil, nil, ctx.Err()
		})
	return server
}

// toolServerName is the name under which the test binary plays a tool server on its standard
// streams.
const toolServerName = "serve-tools"

func serveTools() {
	if err := tools(make(chan string, 8)).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// TestALongConversation: one process with tools of both sorts of server. A command is aborted and
// then a call that blocks, and the conversation continues each time.
func TestALongConversation(t *testing.T) {
	t.Parallel()
	called := make(chan string, 8)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools(called) },
		nil))
	t.Cleanup(web.Close)
	program := filepath.Join(t.TempDir(), toolServerName)
	agenttest.Link(t, program)
	s := newStage(t,
		turn{"calls": []turn{
			{"mcp": "web/echo", "input": turn{"say": "a"}},
			{"mcp": "pipes/echo", "input": turn{"say": "b"}},
			{"mcp": "web/fail", "input": turn{"say": "c"}},
		}},
		agenttest.Says("Heard."),
		agenttest.Bash("echo begun; sleep 100000"), agenttest.Says("Three."),
		turn{"calls": []turn{{"mcp": "web/block", "input": turn{"say": "x"}}}}, agenttest.Says("Went on."))
	s.Config.OneShot = false
	s.Config.MCPServers = []agent.MCPServer{{Name: "web", URL: web.URL}, {Name: "pipes", Command: program}}
	s.Config.AllowedTools = []string{"bash"} // restricts the program's own tools only
	conversation := s.Start()
	first := s.Prompt(t.Context(), conversation, "Listen")
	checkHeard(t, s.Session())
	aborted := abort(t, s, conversation)
	third := s.Prompt(t.Context(), conversation, "three")
	if !first.Success || !third.Success || third.Text != "Three." || first.SessionID == "" ||
		first.SessionID != third.SessionID {
		t.Errorf("outcomes %q, %q; text %q; ids %q, %q; errors %v, %v", first.Outcome, third.Outcome, third.Text,
			first.SessionID, third.SessionID, first.Err, third.Err)
	}
	if !aborted.Aborted || aborted.Outcome != session.OutcomeCancelled || aborted.Output.Signal != "" ||
		aborted.Output.ExitCode != 0 {
		t.Errorf("outcome %q, error %v; the abort ended the process: %+v", aborted.Outcome, aborted.Err, aborted.Output)
	}
	block(t, s, conversation, called)
	if result := s.Prompt(t.Context(), conversation, "Go on"); result.Text != "Went on." {
		t.Errorf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
	}
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
}

// checkHeard looks for what the tools said.
func checkHeard(t *testing.T, s *session.EnrichedSession) {
	t.Helper()
	results := resultsOf(s)
	for name, want := range map[string]string{
		"mcp__web__echo": "echo: a", "mcp__pipes__echo": "echo: b",
		"mcp__web__fail": "on purpose",
	} {
		t.Run(name, func(t *testing.T) {
			got := results[name]
			if got == nil || got.Preview != want || got.IsError != strings.HasSuffix(name, "fail") {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// abort gives a prompt that runs a command, and cancels it when the command runs.
func abort(t *testing.T, s *agenttest.Stage, conversation agent.Session) agent.Result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Watch(func(event string) {
		if strings.HasPrefix(event, `{"type":"tool_execution_start"`) {
			cancel()
		}
	})
	defer s.Watch(func(string) {})
	return s.Prompt(ctx, conversation, "two")
}

// block gives a prompt that calls a tool which does not answer, and cancels it.
func block(t *testing.T, s *agenttest.Stage, conversation agent.Session, called <-chan string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-called:
			cancel()
		case <-ctx.Done():
		}
	}()
	if result := s.Prompt(ctx, conversation, "Block"); !result.Aborted {
		t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
	}
	if what := <-called; what != "cancelled" { // a server that is not told never says so
		t.Errorf("the server noticed: %q", what)
	}
}
