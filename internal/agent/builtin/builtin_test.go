package builtin

import (
	"bytes"
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
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// bench is a working directory, a home and a scripted model for one agent.
type bench struct {
	t      *testing.T
	dir    string
	home   string
	url    string
	events []string
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{}))
	t.Cleanup(server.Close)
	return &bench{t: t, dir: t.TempDir(), home: t.TempDir(), url: server.URL}
}

func (b *bench) config() agent.Config {
	return agent.Config{
		Name: "agent", Dir: b.dir, Home: b.home, Model: "claude-sonnet-4-5", ModelURL: b.url,
		Environ: append(os.Environ(), "ANTHROPIC_API_KEY=sk-ant-secret-of-the-test", "OPENAI_API_KEY=sk-other-secret"),
		Events:  func(event []byte) { b.events = append(b.events, string(event)) },
	}
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

func (b *bench) prompt(ctx context.Context, a *Agent, cfg agent.Config, text string) agent.Result {
	b.t.Helper()
	conversation, err := agent.Start(ctx, a, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conversation.Close()
	result, err := conversation.Prompt(ctx, text)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// toolResults are the texts of the results that the model was given, errors marked.
func (b *bench) toolResults() []string {
	b.t.Helper()
	var results []string
	for _, raw := range b.events {
		var event struct {
			Type    string `json:"type"`
			Message struct {
				Content []struct {
					Type    string `json:"type"`
					Content string `json:"content"`
					IsError bool   `json:"is_error"`
				} `json:"content"`
			} `json:"message"`
		}
		if err := json.Unmarshal([]byte(raw), &event); err != nil {
			b.t.Fatal(err)
		}
		if event.Type != "user" {
			continue
		}
		for _, block := range event.Message.Content {
			text := block.Content
			if block.IsError {
				text = "ERROR " + text
			}
			results = append(results, text)
		}
	}
	return results
}

func TestItReadsEditsRunsAndTells(t *testing.T) {
	b := newBench(t, `{"turns":[
		{"thinking":"look","text":"I read it.","calls":[{"read":"calc.txt"}],"usage":{"input":100,"output":10}},
		{"calls":[{"edit":"calc.txt","old":"minus","new":"plus"},{"bash":"cat calc.txt && echo noise >&2"}],"usage":{"input":120,"output":20}},
		{"calls":[{"write":"sub/new.txt","content":"hello"},{"glob":"**/*.txt"},{"grep":"hel+o"}],"usage":{"input":130,"output":5}},
		{"text":"Done.","usage":{"input":140,"output":3,"cache_read":50}}]}`)
	b.write("calc.txt", "a minus b\n")
	result := b.prompt(t.Context(), New(), b.config(), "fix it")
	if !result.Success || result.Outcome != session.OutcomeSuccess || result.Text != "Done." || result.Turns != 4 {
		t.Errorf("result = %+v", result)
	}
	if got := b.read("calc.txt"); got != "a plus b\n" {
		t.Errorf("calc.txt = %q", got)
	}
	results := b.toolResults()
	for i, want := range []string{
		"     1\ta minus b", "replaced 1", "a plus b", "wrote 5 bytes", "sub/new.txt",
		"sub/new.txt:1:hello",
	} {
		if !strings.Contains(results[i], want) {
			t.Errorf("result %d = %q, want %q in it", i, results[i], want)
		}
	}
	if result.Usage.InputTokens != 490 || result.Usage.OutputTokens != 38 || result.Usage.CacheReadTokens != 50 ||
		result.Usage.CostUSD == nil {
		t.Errorf("usage = %+v", result.Usage)
	}
}

func TestItsStreamDecodesToTheSameFigures(t *testing.T) {
	b := newBench(t, `{"turns":[{"calls":[{"bash":"exit 3"}],"usage":{"input":100,"output":10}},{"text":"It failed.","usage":{"input":7,"output":2}}]}`)
	result := b.prompt(t.Context(), New(), b.config(), "try")
	fold := session.NewFold(session.Options{})
	decoder := New().Dialects()[0].New()
	for i, event := range b.events {
		decoder.Decode([]byte(event), session.Stamp{Line: int64(i + 1)}, fold)
	}
	got := fold.Session()
	if got.Unknown != 0 || got.ParseErrors != 0 || got.Outcome != session.OutcomeSuccess || got.Turns != 2 ||
		got.SessionID != result.SessionID {
		t.Errorf("session = %+v", got)
	}
	if got.Usage.InputTokens != 107 || got.Usage.OutputTokens != 12 || got.Usage.CostUSD == nil ||
		*got.Usage.CostUSD != *result.Usage.CostUSD {
		t.Errorf("usage = %+v, result says %+v", got.Usage, result.Usage)
	}
}

// TestItsStreamIsToldFromThatOfOthers: without a trace around it, a file of the stream is read by
// whoever comes first among those who speak the dialect.
func TestItsStreamIsToldFromThatOfOthers(t *testing.T) {
	b := newBench(t, `{"turns":[{"text":"Hello."}]}`)
	b.prompt(t.Context(), New(), b.config(), "greet")
	sessions, err := session.Read(strings.NewReader(strings.Join(b.events, "\n")),
		session.Dialects{session.StreamDialect("somebody-else")}, session.Options{})
	if err != nil || len(sessions) != 1 || sessions[0].Agent != ID {
		t.Errorf("%v, %+v", err, sessions)
	}
}

// TestTheShellSeesNoKey compares the whole environment, so that a new variable is noticed.
func TestTheShellSeesNoKey(t *testing.T) {
	b := newBench(t, `{"turns":[{"calls":[{"bash":"env -0 | tr '\\0' '\\n' | cut -d= -f1 | sort"}]},{"text":"ok"}]}`)
	cfg := b.config()
	cfg.Environ = []string{
		"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k", "GH_TOKEN=k",
		"AWS_SECRET_ACCESS_KEY=k", "LANG=C", "RANDOM_THING=x",
	}
	cfg.ExtraEnv = []string{"PORT=4711"}
	b.prompt(t.Context(), New(), cfg, "env")
	got := strings.Fields(b.toolResults()[0])
	want := []string{
		"CI", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME", "GIT_CONFIG_GLOBAL",
		"GIT_CONFIG_NOSYSTEM",
		"GIT_TERMINAL_PROMPT", "HOME", "LANG", "NO_COLOR", "PATH", "PORT", "TERM", "TMPDIR", "TZ",
	}
	// The shell itself and the spawner's marker of the run are not ours to choose.
	got = slices.DeleteFunc(got, func(name string) bool {
		return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_", sandbox.RunMarker}, name)
	})
	if !slices.Equal(got, want) {
		t.Errorf("the shell sees %v, want %v", got, want)
	}
}

func TestItCannotLeaveItsDirectory(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("treasure"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, fmt.Sprintf(`{"turns":[{"calls":[
		{"tool":"Read","input":{"file_path":%[1]q}},
		{"tool":"Read","input":{"file_path":"../secret.txt"}},
		{"tool":"Read","input":{"file_path":"link/secret.txt"}},
		{"tool":"Write","input":{"file_path":"link/new.txt","content":"x"}},
		{"tool":"Edit","input":{"file_path":%[1]q,"old_string":"treasure","new_string":"gone"}},
		{"tool":"Grep","input":{"pattern":"treasure","path":".."}},
		{"tool":"Glob","input":{"pattern":"*","path":%[2]q}}
	]},{"text":"caught"}]}`, filepath.Join(outside, "secret.txt"), outside))
	if err := os.Symlink(outside, filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	b.prompt(t.Context(), New(), b.config(), "escape")
	for i, result := range b.toolResults() {
		if !strings.HasPrefix(result, "ERROR") || strings.Contains(result, "treasure") {
			t.Errorf("call %d got %q", i, result)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("something was written outside: %v", entries)
	}
}

func TestMistakesAreToldToTheModelAndItGoesOn(t *testing.T) {
	b := newBench(t, `{"turns":[{"calls":[
		{"tool":"Nonsense","input":{}},
		{"tool":"Bash","input":{}},
		{"tool":"Bash","input":{"command":7}},
		{"tool":"Edit","input":{"file_path":"a.txt","old_string":"x","new_string":"y"}},
		{"tool":"Edit","input":{"file_path":"a.txt","old_string":"absent","new_string":"y"}},
		{"tool":"Read","input":{"file_path":"missing.txt"}},
		{"tool":"Read","input":{"file_path":"bin"}},
		{"tool":"Grep","input":{"pattern":"("}},
		{"tool":"Bash","input":{"command":"printf out; printf err >&2; exit 9"}},
		{"tool":"Bash","input":{"command":"sleep 60","timeout":100}}
	]},{"text":"recovered"}]}`)
	b.write("a.txt", "x x")
	b.write("bin", "\x00\x01")
	result := b.prompt(t.Context(), New(), b.config(), "go")
	if !result.Success {
		t.Fatalf("result = %+v", result)
	}
	wants := []string{
		"no tool", "command is missing", "does not fit", "occurs 2 times", "does not occur", "no such file",
		"not a text file", "pattern", "exit code 9", "ended after",
	}
	for i, got := range b.toolResults() {
		if !strings.HasPrefix(got, "ERROR") || !strings.Contains(got, wants[i]) {
			t.Errorf("result %d = %q, want %q", i, got, wants[i])
		}
	}
}

func TestLimits(t *testing.T) {
	loop := `{"turns":[{"label":"again","calls":[{"bash":"true"}],"usage":{"input":1000,"output":1000}},{"goto":"again"}]}`
	t.Run("turns", func(t *testing.T) {
		b := newBench(t, loop)
		cfg := b.config()
		cfg.MaxTurns = 3
		result := b.prompt(t.Context(), New(), cfg, "loop")
		if result.Success || result.Outcome != session.OutcomeMaxTurns || result.Turns != 3 {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("money", func(t *testing.T) {
		b := newBench(t, loop)
		cfg := b.config()
		cfg.Account = gateway.NewAccount("this test", gateway.Budget{USD: 0.03}, nil)
		result := b.prompt(t.Context(), New(), cfg, "loop")
		if result.Outcome != session.OutcomeBudget || *result.Usage.CostUSD < 0.03 || *result.Usage.CostUSD > 0.06 {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("tokens", func(t *testing.T) {
		b := newBench(t, loop)
		cfg := b.config()
		cfg.Account = gateway.NewAccount("this test", gateway.Budget{Tokens: 5000}, nil)
		result := b.prompt(t.Context(), New(), cfg, "loop")
		var empty *gateway.BudgetError
		if result.Outcome != session.OutcomeBudget || !errors.As(result.Err, &empty) || !empty.Tokens ||
			result.Usage.TotalTokens != 6000 {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("money without a price is refused", func(t *testing.T) {
		b := newBench(t, loop)
		cfg := b.config()
		cfg.Model, cfg.Account = "nobody-knows-me", gateway.NewAccount("this test", gateway.Budget{USD: 1}, nil)
		if _, err := New().Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "has none") {
			t.Errorf("Start = %v", err)
		}
	})
}

func TestAnUnpricedModelHasNoCost(t *testing.T) {
	b := newBench(t, `{"turns":[{"text":"hi","usage":{"input":5,"output":5}}]}`)
	cfg := b.config()
	cfg.Model = "nobody-knows-me"
	result := b.prompt(t.Context(), New(), cfg, "hi")
	if !result.Success || result.Usage.CostUSD != nil || result.Usage.CostSource != session.CostUnknown {
		t.Errorf("result = %+v", result)
	}
}

func TestAConversationIsResumedInANewProcess(t *testing.T) {
	b := newBench(t, `{"turns":[{"text":"first"},{"cases":[{"when":{"first_prompt":"one"},"text":"I remember"}],"text":"I forgot"}]}`)
	first := b.prompt(t.Context(), New(), b.config(), "one")
	cfg := b.config()
	cfg.Resume = first.SessionID
	second := b.prompt(t.Context(), New(), cfg, "two")
	if second.Text != "I remember" || second.SessionID != first.SessionID {
		t.Errorf("second = %+v", second)
	}
	cfg.Resume = "unknown"
	var unknown *unknownSessionError
	if _, err := New().Start(t.Context(), cfg); !errors.As(err, &unknown) {
		t.Errorf("resuming an unknown session: %v", err)
	}
	cfg.Resume = "../../etc/passwd"
	if _, err := New().Start(t.Context(), cfg); !errors.As(err, &unknown) {
		t.Errorf("resuming a path: %v", err)
	}
}

func TestATornSessionFileIsResumed(t *testing.T) {
	b := newBench(t, `{"turns":[{"calls":[{"bash":"true"}]},{"text":"done"},{"text":"again"}]}`)
	first := b.prompt(t.Context(), New(), b.config(), "one")
	path := store{dir: filepath.Join(b.home, "sessions")}.path(first.SessionID)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.Resume = first.SessionID
	for _, cut := range cutsOf(content) {
		if err := os.WriteFile(path, content[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if result := b.prompt(t.Context(), New(), cfg, "two"); !result.Success {
			t.Fatalf("cut at %d: %+v", cut, result)
		}
	}
}

// cutsOf returns where a kill may cut a file of lines: around every line break, and within a line,
// where one place is as good as another.
func cutsOf(content []byte) []int {
	var cuts []int
	start := 0
	for line := range bytes.Lines(content) {
		end := start + len(line)
		cuts = append(cuts, start, start+1, (start+end)/2, end-1)
		start = end
	}
	return cuts
}

// TestAnInterruptedPromptIsContinued cuts the conversation's file as a kill would, and takes the
// prompt up again.
func TestAnInterruptedPromptIsContinued(t *testing.T) {
	const script = `{"turns":[{"calls":[{"read":"a.txt"}]},{"calls":[{"bash":"echo ran >> ran.txt"}]},{"text":"done"}]}`
	b := newBench(t, script)
	b.write("a.txt", "hello")
	first := promptOnce(t, b.config(), "turn 1", "one")
	path := store{dir: filepath.Join(b.home, "sessions")}.path(first.SessionID)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.Resume = first.SessionID
	for _, cut := range append(cutsOf(content), len(content)) {
		if err := os.WriteFile(path, content[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if result := promptOnce(t, cfg, "turn 1", "one"); !result.Success || result.Text != "done" {
			t.Fatalf("cut at %d: %+v", cut, result)
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if asked := strings.Count(string(kept), `{"type":"text","text":"one"}`); asked != 1 {
			t.Fatalf("cut at %d: the prompt stands %d times in the conversation", cut, asked)
		}
	}
}

// promptOnce starts a conversation, or takes it up, and gives it one prompt under an id.
func promptOnce(t *testing.T, cfg agent.Config, id, prompt string) agent.Result {
	t.Helper()
	started, err := New().Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	result, err := started.(*conversation).PromptOnce(t.Context(), id, prompt)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestTheSamePromptUnderAnotherIDIsANewOne(t *testing.T) {
	b := newBench(t, `{"turns":[{"text":"first"},{"text":"second"}]}`)
	first := promptOnce(t, b.config(), "turn 1", "go on")
	cfg := b.config()
	cfg.Resume = first.SessionID
	if again := promptOnce(t, cfg, "turn 1", "go on"); again.Text != "first" {
		t.Errorf("the same prompt again is answered with %q", again.Text)
	}
	if second := promptOnce(t, cfg, "turn 2", "go on"); second.Text != "second" {
		t.Errorf("the next prompt is answered with %q", second.Text)
	}
}

func TestAnInterruptEndsACommandAndIsTold(t *testing.T) {
	b := newBench(t, `{"turns":[{"calls":[{"bash":"echo > started; sleep 100000"}]},{"text":"never"}]}`)
	started := filepath.Join(b.dir, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = os.ReadFile(started) // waits for the command
		cancel()
	}()
	result := b.prompt(ctx, New(), b.config(), "wait")
	if result.Success || !result.Aborted || result.Outcome != session.OutcomeCancelled {
		t.Errorf("result = %+v", result)
	}
	if last := b.events[len(b.events)-1]; !strings.Contains(last, `"type":"result"`) {
		t.Errorf("last event = %s", last)
	}
}

func TestFailuresOfTheServiceAreToldApart(t *testing.T) {
	for _, test := range []struct {
		fault string
		want  session.Outcome
	}{
		{`{"status":529}`, session.OutcomeProvider},
		{`{"status":429}`, session.OutcomeProvider},
		{`{"status":401}`, session.OutcomeAuth},
		{`{"status":400}`, session.OutcomeError},
	} {
		t.Run(test.fault, func(t *testing.T) {
			b := newBench(t, `{"turns":[{"fault":`+test.fault+`,"text":"never"}]}`)
			result := b.prompt(t.Context(), &Agent{MaxRetries: -1}, b.config(), "hi")
			if result.Success || result.Outcome != test.want || result.Err == nil {
				t.Errorf("%+v", result)
			}
		})
	}
}

func TestARetryIsShownAndTheRunSucceeds(t *testing.T) {
	b := newBench(t, `{"turns":[{"fault":{"status":529,"times":1,"retry_after":"0"},"text":"here"}]}`)
	result := b.prompt(t.Context(), New(), b.config(), "hi")
	if !result.Success || !slices.ContainsFunc(b.events,
		func(e string) bool { return strings.Contains(e, `"subtype":"api_retry"`) }) {
		t.Errorf("result = %+v, events %v", result, b.events)
	}
}

func TestAFullContextIsMadeRoomIn(t *testing.T) {
	// A server that refuses long conversations, as the real ones do.
	calls := 0
	inner := scriptedHandler(t, `{"turns":[{"calls":[{"bash":"head -c 20000 /dev/zero | tr '\\0' x"}]},{"calls":[{"bash":"head -c 20000 /dev/zero | tr '\\0' y"}]},
		{"calls":[{"bash":"head -c 20000 /dev/zero | tr '\\0' z"}]},{"calls":[{"bash":"head -c 20000 /dev/zero | tr '\\0' w"}]},{"text":"made it"}]}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		if r.ContentLength > 70_000 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	b := &bench{t: t, dir: t.TempDir(), home: t.TempDir(), url: server.URL}
	result := b.prompt(t.Context(), New(), b.config(), "fill it up")
	if !result.Success || result.Text != "made it" {
		t.Fatalf("result = %+v", result)
	}
	if !slices.ContainsFunc(b.events, func(e string) bool { return strings.Contains(e, "compact_boundary") }) {
		t.Error("no event tells that the conversation was shortened")
	}
}

func scriptedHandler(t *testing.T, script string) http.Handler {
	t.Helper()
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{})
}

func TestToolsOfServersAreCalled(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "orc", Version: "1"}, nil)
	type input struct {
		Word string `json:"word"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "shout", Description: "say it loud"},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			if in.Word == "" {
				return nil, nil, errors.New("nothing to say")
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.ToUpper(in.Word)}}}, nil,
				nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if r.Header.Get("Authorization") != "Bearer token-of-the-test" {
			return nil
		}
		return server
	}, nil)
	endpoint := httptest.NewServer(handler)
	defer endpoint.Close()
	b := newBench(t, `{"turns":[{"calls":[{"mcp":"orc/shout","input":{"word":"hey"}},{"mcp":"orc/shout","input":{"word":""}}]},{"text":"ok"}]}`)
	cfg := b.config()
	cfg.MCPServers = []agent.MCPServer{{
		Name: "orc", URL: endpoint.URL,
		Headers: map[string]string{"Authorization": "Bearer token-of-the-test"},
	}}
	b.prompt(t.Context(), New(), cfg, "shout")
	results := b.toolResults()
	if results[0] != "HEY" || !strings.HasPrefix(results[1], "ERROR") ||
		!strings.Contains(results[1], "nothing to say") {
		t.Errorf("results = %q", results)
	}
	cfg.MCPServers[0].Headers = nil
	if _, err := New().Start(t.Context(), cfg); err == nil {
		t.Error("a server that refuses the token was accepted")
	}
}

// TestEveryCallHasAnIDOfItsOwn, which it still has when a later process repeats it. The ids of the
// model do not count: some models give one id to several calls.
func TestEveryCallHasAnIDOfItsOwn(t *testing.T) {
	var ids []string
	server := mcp.NewServer(&mcp.Implementation{Name: "orc", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "note"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			id, _, _ := strings.Cut(fmt.Sprint(r.Params.Meta[callIDKey]), ":") // the rest is the model's
			ids = append(ids, id)
			return &mcp.CallToolResult{}, nil, nil
		})
	endpoint := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer endpoint.Close()
	const twice = `{"calls":[{"mcp":"orc/note","input":{}},{"mcp":"orc/note","input":{}}]}`
	b := newBench(t, `{"turns":[`+twice+`,`+twice+`,{"text":"done"}]}`)
	cfg := b.config()
	cfg.MCPServers = []agent.MCPServer{{Name: "orc", URL: endpoint.URL}}
	cfg.Resume = promptOnce(t, cfg, "turn 1", "note").SessionID
	want := []string{"1.0", "1.1", "2.0", "2.1"}
	if !slices.Equal(ids, want) {
		t.Errorf("the ids are %q, want %q", ids, want)
	}
	path := store{dir: filepath.Join(b.home, "sessions")}.path(cfg.Resume)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ids = nil
	kept := strings.SplitAfter(string(content), "\n")[:4] // prompt, reply, results, reply
	if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	promptOnce(t, cfg, "turn 1", "note")
	if !slices.Equal(ids, want[2:]) {
		t.Errorf("repeated, the ids are %q, want %q", ids, want[2:])
	}
}

func TestItSpeaksEveryProtocol(t *testing.T) {
	for _, protocol := range []string{"anthropic", "responses", "chat"} {
		b := newBench(t, `{"turns":[{"calls":[{"bash":"echo over"}]},{"cases":[{"when":{"last_result":"over"},"text":"and out"}],"text":"lost"}]}`)
		cfg := b.config()
		cfg.Environ = append(cfg.Environ, "FIT_MODEL_PROTOCOL="+protocol)
		if result := b.prompt(t.Context(), New(), cfg, "talk"); result.Text != "and out" {
			t.Errorf("%s: %+v", protocol, result)
		}
	}
}

func TestWithoutAModelItSaysWhatToDo(t *testing.T) {
	_, err := New().Start(t.Context(),
		agent.Config{Dir: t.TempDir(), Home: t.TempDir(), Environ: []string{"PATH=/bin"}})
	var auth *agent.AuthError
	if !errors.As(err, &auth) || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("Start = %v", err)
	}
}

// TestALongResultIsRedactedBeforeItIsCut puts a secret at every place around the cuts of a result.
func TestALongResultIsRedactedBeforeItIsCut(t *testing.T) {
	const secret, limit = "wise-old-owl-1815", 400
	c := &conversation{cfg: agent.Config{Redactor: redact.New(redact.Config{Extra: map[string]string{"OWL": secret}})}}
	for at := range 1000 {
		text := strings.Repeat("x", at) + secret + strings.Repeat("y", 1000-at)
		clipped := c.clip(text, limit)
		if !strings.Contains(clipped, "left out") {
			t.Fatalf("it was not cut: %q", clipped)
		}
		for part := 0; part+4 <= len(secret); part++ {
			if strings.Contains(clipped, secret[part:part+4]) {
				t.Fatalf("with the secret at %d: %q", at, clipped)
			}
		}
	}
}

// The agent that is nothing but a model sends one request, without tools and without a prompt of
// its own, over every protocol. The script answers otherwise where tools are offered.
func TestTheModelByItself(t *testing.T) {
	url := scriptedtest.ServeAll(t, map[string]string{
		"tools": `{"aux": {"text": "Offered none."}, "turns": [{"text": "Offered some."}]}`,
		"":      `{"turns": [{"cases": [{"when": {"system": "re:^\\s*Be brief\\.\\s*$"}, "text": "Paris."}], "text": "Who am I?"}, {"text": "Rome."}]}`,
	}, scripted.Options{})
	for _, protocol := range []string{"anthropic", "responses", "chat", "gemini"} {
		for script, answers := range map[string][]string{"": {"Paris.", "Rome."}, "tools": {"Offered none."}} {
			var lines []string
			cfg := agent.Config{
				Dir: t.TempDir(), Home: t.TempDir(), Model: "m", ModelURL: url + scripted.Path(script, "", ""),
				SystemPrompt: "Be brief.", MaxTurns: 1, Environ: []string{"FIT_MODEL_PROTOCOL=" + protocol},
				Events: func(event []byte) { lines = append(lines, string(event)) },
			}
			a := NewModel()
			if err := agent.Check(a, cfg); err != nil {
				t.Fatal(err)
			}
			conversation, err := a.Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range answers {
				result, err := conversation.Prompt(t.Context(), "What is the capital?")
				if err != nil || !result.Success || result.Text != want || result.Turns != 1 ||
					result.Usage.TotalTokens == 0 || result.Output.Agent != ModelID {
					t.Errorf("%s: %+v, %v", protocol, result, err)
				}
			}
			if err := conversation.Close(); err != nil {
				t.Error(err)
			}
			sessions, err := session.Read(strings.NewReader(strings.Join(lines, "\n")), a.Dialects(), session.Options{})
			if err != nil || len(sessions) != 1 || sessions[0].Agent != ModelID || sessions[0].Turns != len(answers) {
				t.Errorf("%s: %+v, %v", protocol, sessions, err)
			}
		}
	}
}

// What a model by itself cannot do is refused before anything starts.
func TestTheModelByItselfHasNoTools(t *testing.T) {
	for _, ask := range []func(*agent.Config){
		func(cfg *agent.Config) { cfg.MCPServers = []agent.MCPServer{{Name: "x", URL: "http://127.0.0.1:1"}} },
		func(cfg *agent.Config) { cfg.AllowedTools = []string{"Read"} },
		func(cfg *agent.Config) { cfg.DisallowedTools = []string{"Read"} },
	} {
		cfg := agent.Config{Dir: t.TempDir(), Home: t.TempDir(), ModelURL: "http://127.0.0.1:1"}
		ask(&cfg)
		var refused *agent.CapabilityError
		if err := agent.Check(NewModel(), cfg); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
