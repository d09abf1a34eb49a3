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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/model/scripted"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
)

// The tests here drive the real program against the scripted model, for what is this agent's own; what all agents share is tested in test/agents.

type turn = map[string]any

// stage is the program with a scripted model and a workspace.
type stage struct {
	t      *testing.T
	config agent.Config

	mu       sync.Mutex
	events   []string
	requests []string
	watcher  func(event string)
}

func newStage(t *testing.T, turns ...turn) *stage {
	t.Helper()
	s := &stage{t: t}
	data, err := json.Marshal(turn{"turns": turns, "usage": turn{"input": 1000, "output": 100}})
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	record := func(r scripted.Record) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, r.Path+" "+string(r.Body))
	}
	server, err := scripted.Listen("127.0.0.1:0", scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{LogBodies: true, OnRequest: record}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	bin, err := filepath.Abs("../../test/agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	installation, err := New().Probe(t.Context(), agent.Host{Environ: environ, CacheDir: filepath.Join(filepath.Dir(bin), ".cache", "fit")})
	var notFound *agent.NotFoundError
	if errors.As(err, &notFound) {
		testenv.Missing(t, "%v (make test installs it in test/agents)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.config = agent.Config{
		Name: "worker", Dir: t.TempDir(), Home: t.TempDir(), Environ: environ, ExtraEnv: []string{sandbox.RunMarker + "=" + t.Name() + server.URL},
		Model: "scripted-model", ModelURL: server.URL, OneShot: true, Spawner: sandbox.NewSpawner(), Installation: &installation, Grace: 3 * time.Second,
		Events: func(event []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, string(event))
			if s.watcher != nil {
				s.watcher(string(event))
			}
		},
	}
	return s
}

func (s *stage) start() agent.Session {
	s.t.Helper()
	conversation, err := New().Start(s.t.Context(), s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conversation.Close() })
	return conversation
}

func (s *stage) prompt(ctx context.Context, conversation agent.Session, text string) agent.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	result, err := conversation.Prompt(ctx, text)
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// results are what came back from tools, by the name of the tool.
func (s *stage) results() map[string]*session.ToolResult {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions, err := session.Read(strings.NewReader(strings.Join(s.events, "\n")), New().Dialects(), session.Options{})
	if err != nil || len(sessions) != 1 {
		s.t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	names, results := map[string]string{}, map[string]*session.ToolResult{}
	for _, event := range sessions[0].Events {
		if event.Tool != nil {
			names[event.Tool.CallID] = event.Tool.NativeName
		}
		if event.Result != nil {
			results[names[event.Result.CallID]] = event.Result
		}
	}
	return results
}

// watch calls a function for every event from now on.
func (s *stage) watch(watcher func(event string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watcher = watcher
}

func (s *stage) requested() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, "\n")
}

func TestEveryProtocol(t *testing.T) {
	for model, path := range map[string]string{"claude-sonnet-4-5": "/v1/messages", "gpt-5.5": "/v1/responses", "something-else": "/v1/chat/completions"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, turn{"calls": []turn{{"bash": "echo hello"}}}, turn{"text": "Done."})
			s.config.Model = model
			result := s.prompt(t.Context(), s.start(), "Say hello")
			if !result.Success || result.Text != "Done." || result.Usage.InputTokens != 2000 || result.Usage.CostUSD != nil {
				t.Errorf("outcome %q, text %q, usage %+v, error %v", result.Outcome, result.Text, result.Usage, result.Err)
			}
			if requests := s.requested(); strings.Count(requests, path+" ") != 2 {
				t.Errorf("requests: %s", requests)
			}
			if result.Output.DiskJSONLPath == "" {
				t.Fatal("the program's own record was not found")
			}
			sessions, err := session.ReadFile(result.Output.DiskJSONLPath, New().Dialects(), session.Options{})
			if err != nil || len(sessions) != 1 {
				t.Fatalf("%d sessions on record, %v", len(sessions), err)
			}
			if d := sessions[0]; d.Dialect != DiskDialectName || d.SessionID != result.SessionID || d.Outcome != session.OutcomeSuccess || d.Turns != 2 {
				t.Errorf("on record: dialect %q, id %q, outcome %q, %d turns", d.Dialect, d.SessionID, d.Outcome, d.Turns)
			}
		})
	}
}

func TestAbortBetweenTwoPrompts(t *testing.T) {
	s := newStage(t, turn{"text": "One."}, turn{"calls": []turn{{"bash": "echo begun; sleep 100"}}}, turn{"text": "Three."})
	s.config.OneShot = false
	conversation := s.start()
	first := s.prompt(t.Context(), conversation, "one")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.watch(func(event string) {
		if strings.HasPrefix(event, `{"type":"tool_execution_start"`) {
			cancel()
		}
	})
	began := time.Now()
	second := s.prompt(ctx, conversation, "two")
	third := s.prompt(t.Context(), conversation, "three")
	if !first.Success || !second.Aborted || second.Outcome != session.OutcomeCancelled || !third.Success || third.Text != "Three." {
		t.Errorf("outcomes %q, %q, %q; text %q; errors %v, %v, %v", first.Outcome, second.Outcome, third.Outcome, third.Text, first.Err, second.Err, third.Err)
	}
	if first.SessionID == "" || first.SessionID != third.SessionID {
		t.Errorf("ids %q, %q", first.SessionID, third.SessionID)
	}
	if elapsed := time.Since(began); elapsed > 20*time.Second {
		t.Errorf("the abort and the third prompt took %v", elapsed)
	}
}

func TestLimitsHoldAfterARetry(t *testing.T) {
	step := turn{"calls": []turn{{"bash": "echo x >> steps"}}}
	failing := turn{"calls": []turn{{"bash": "echo x >> steps"}}, "fault": turn{"status": 503, "times": 1}}
	s := newStage(t, failing, step, step, step, step)
	s.config.OneShot, s.config.MaxTurns = false, 2
	result := s.prompt(t.Context(), s.start(), "Count")
	if result.Outcome != session.OutcomeMaxTurns {
		t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
	}
	data, err := os.ReadFile(filepath.Join(s.config.Dir, "steps"))
	if err != nil || string(data) != "x\nx\n" {
		t.Errorf("steps %q, %v", data, err)
	}
	if asked := strings.Count(strings.TrimSpace(s.requested()), "\n") + 1; asked != 3 {
		t.Errorf("the model was asked %d times, want 3: a failure and two turns", asked)
	}
}

func TestAllowedToolsAreTheOnlyOnes(t *testing.T) {
	s := newStage(t, turn{"text": "Fine."})
	s.config.AllowedTools, s.config.DisallowedTools = []string{"read", "grep", "bash"}, []string{"bash"}
	if result := s.prompt(t.Context(), s.start(), "Which tools?"); !result.Success {
		t.Fatalf("outcome %q, error %v", result.Outcome, result.Err)
	}
	var request struct {
		Tools []struct {
			Function struct{ Name string }
		}
	}
	_, body, _ := strings.Cut(s.requested(), " ")
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range request.Tools {
		names = append(names, tool.Function.Name)
	}
	if got := strings.Join(sorted(names), " "); got != "grep read" {
		t.Errorf("tools offered: %s", got)
	}
}

func TestTheRepositoryBringsNothingAlong(t *testing.T) {
	s := newStage(t, turn{"text": "Fine."})
	for name, content := range map[string]string{
		".pi/SYSTEM.md": "SMUGGLED", ".pi/APPEND_SYSTEM.md": "SMUGGLED", "AGENTS.md": "SMUGGLED", "CLAUDE.md": "SMUGGLED",
		".pi/skills/s/SKILL.md":  "---\nname: s\ndescription: SMUGGLED\n---\n",
		".pi/extensions/evil.ts": `import { writeFileSync } from "node:fs"; export default () => writeFileSync("loaded", "");`,
	} {
		path := filepath.Join(s.config.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if result := s.prompt(t.Context(), s.start(), "Hello"); !result.Success {
		t.Fatalf("outcome %q, error %v", result.Outcome, result.Err)
	}
	if strings.Contains(s.requested(), "SMUGGLED") {
		t.Error("the repository's words reached the model")
	}
	if _, err := os.Stat(filepath.Join(s.config.Dir, "loaded")); err == nil {
		t.Error("the repository's extension was loaded")
	}
}

func TestWhyItDidNotStartIsTold(t *testing.T) {
	for name, oneShot := range map[string]bool{"one process": true, "long-lived": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, turn{"text": "Never said."})
			s.config.OneShot = oneShot
			s.config.MCPServers = []agent.MCPServer{{Name: "gone", URL: "http://127.0.0.1:1/mcp"}}
			result := s.prompt(t.Context(), s.start(), "Hello")
			if result.Success || result.Err == nil || !strings.Contains(result.Err.Error(), "MCP server gone is not connected") {
				t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
			}
			if s.requested() != "" {
				t.Error("the model was asked")
			}
		})
	}
}

type words struct {
	Say string `json:"say"`
}

// tools are the tools of both servers below.
func tools(called chan<- string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Say it again."}, func(_ context.Context, _ *mcp.CallToolRequest, w words) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "echo: " + w.Say}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fail", Description: "Fail."}, func(context.Context, *mcp.CallToolRequest, words) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("on purpose")
	})
	mcp.AddTool(server, &mcp.Tool{Name: "block", Description: "Wait for ever."}, func(ctx context.Context, _ *mcp.CallToolRequest, _ words) (*mcp.CallToolResult, any, error) {
		called <- "begun"
		<-ctx.Done()
		called <- "cancelled"
		return nil, nil, ctx.Err()
	})
	return server
}

// toolServerName is the name under which the test binary plays a tool server on its standard streams.
const toolServerName = "serve-tools"

func serveTools() {
	if err := tools(make(chan string, 8)).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func TestToolsOfBothSortsOfServer(t *testing.T) {
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools(nil) }, nil))
	t.Cleanup(web.Close)
	program := filepath.Join(t.TempDir(), toolServerName)
	link(t, program)
	s := newStage(t,
		turn{"calls": []turn{{"mcp": "web/echo", "input": turn{"say": "a"}}, {"mcp": "pipes/echo", "input": turn{"say": "b"}}, {"mcp": "web/fail", "input": turn{"say": "c"}}}},
		turn{"text": "Heard."})
	s.config.MCPServers = []agent.MCPServer{{Name: "web", URL: web.URL}, {Name: "pipes", Command: program}}
	s.config.AllowedTools = []string{"read"} // restricts the program's own tools only
	if result := s.prompt(t.Context(), s.start(), "Listen"); !result.Success {
		t.Fatalf("outcome %q, error %v", result.Outcome, result.Err)
	}
	results := s.results()
	for name, want := range map[string]string{"mcp__web__echo": "echo: a", "mcp__pipes__echo": "echo: b", "mcp__web__fail": "on purpose"} {
		got := results[name]
		if got == nil || got.Preview != want || got.IsError != strings.HasSuffix(name, "fail") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestACallThatBlocksIsCancelledWithThePrompt(t *testing.T) {
	called := make(chan string, 8)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools(called) }, nil))
	t.Cleanup(web.Close)
	s := newStage(t, turn{"calls": []turn{{"mcp": "web/block", "input": turn{"say": "x"}}}}, turn{"text": "Went on."})
	s.config.OneShot = false
	s.config.MCPServers = []agent.MCPServer{{Name: "web", URL: web.URL}}
	conversation := s.start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		select {
		case <-called:
			cancel()
		case <-ctx.Done():
		}
	}()
	if result := s.prompt(ctx, conversation, "Block"); !result.Aborted {
		t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
	}
	select {
	case what := <-called:
		if what != "cancelled" {
			t.Errorf("the server noticed: %q", what)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server was not told that nobody waits any more")
	}
	if result := s.prompt(t.Context(), conversation, "Go on"); result.Text != "Went on." {
		t.Errorf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
	}
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
}
