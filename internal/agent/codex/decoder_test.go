package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/session/sessiontest"
)

func read(t testing.TB, lines ...string) *session.EnrichedSession {
	t.Helper()
	sessions, err := session.Read(strings.NewReader(strings.Join(lines, "\n")), New().Dialects(), session.Options{})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	return sessions[0]
}

// Lines of `exec --json`.
const (
	execStarted  = `{"type":"thread.started","thread_id":"T"}`
	execCall     = `{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -c 'ls'","status":"in_progress"}}`
	execReturned = `{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -c 'ls'","aggregated_output":"a\n","exit_code":0,"status":"completed"}}`
)

func execSaid(text string) string {
	return fmt.Sprintf(`{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":%q}}`, text)
}

func execCompleted(input, cached, output int) string {
	return fmt.Sprintf(`{"type":"turn.completed","usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d}}`, input, cached, output)
}

// Lines of the app server.
func serverStarted(prompt string) string {
	return fmt.Sprintf(`{"method":"turn/started","params":{"threadId":"T","turn":{"id":%q}}}`, prompt)
}

func serverUsage(prompt string, total, last int) string {
	return fmt.Sprintf(`{"method":"thread/tokenUsage/updated","params":{"threadId":"T","turnId":%q,"tokenUsage":{"total":{"inputTokens":%d},"last":{"inputTokens":%d}}}}`,
		prompt, total, last)
}

func serverSaid(text string) string {
	return fmt.Sprintf(`{"method":"item/completed","params":{"threadId":"T","item":{"type":"agentMessage","id":"m","text":%q}}}`, text)
}

func serverCall(id, event string) string {
	return fmt.Sprintf(`{"method":"item/%s","params":{"threadId":"T","item":{"type":"commandExecution","id":%q,"command":"ls","status":"completed","exitCode":0}}}`, event, id)
}

func serverCompleted(status string) string {
	return fmt.Sprintf(`{"method":"turn/completed","params":{"threadId":"T","turn":{"status":%q}}}`, status)
}

func TestCountersGoOnOverResumes(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  int64
	}{
		"two processes in one stream": {[]string{
			execStarted, execCompleted(2000, 0, 0), execStarted,
			execCompleted(3000, 0, 0),
		}, 3000},
		"a new conversation": {[]string{
			serverStarted("1"), serverUsage("1", 1000, 1000),
			serverUsage("1", 2500, 1500),
		}, 2500},
		"only the resumed part": {[]string{
			serverUsage("0", 5000, 1000), serverStarted("1"),
			serverUsage("1", 6000, 1000),
		}, 1000},
		"resumed without being told": {[]string{
			serverStarted("1"), serverUsage("1", 6000, 1000),
			serverUsage("1", 7000, 1000),
		}, 2000},
		"begun in one, gone on with in the other": {
			[]string{
				execStarted, execCompleted(2000, 0, 0), serverUsage("0", 2000, 1000), serverStarted("1"),
				serverUsage("1", 3000, 1000),
			}, 3000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(t, test.lines...).Usage.InputTokens; got != test.want {
				t.Errorf("%s: %d tokens, want %d", name, got, test.want)
			}
		})
	}
}

func TestWhatIsReadFromTheCacheIsNoInput(t *testing.T) {
	u := read(t, execStarted, execCompleted(1200, 900, 80)).Usage
	if u.InputTokens != 300 || u.CacheReadTokens != 900 || u.OutputTokens != 80 || u.TotalTokens != 1280 {
		t.Errorf("usage: %+v", u)
	}
}

func TestAnswersOfTheModelAreTurns(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  int
	}{
		"two calls of one answer": {
			[]string{
				serverStarted("1"), serverCall("a", "started"), serverCall("a", "completed"),
				serverCall("b", "started"), serverCall("b", "completed"),
				serverUsage("1", 1, 1), serverSaid("done"), serverUsage("1", 2, 1),
			}, 2,
		},
		"a call that was rejected silently": {
			[]string{
				serverStarted("1"), serverSaid("a"), serverUsage("1", 1, 1), serverUsage("1", 2, 1),
				serverSaid("b"), serverUsage("1", 3, 1),
			}, 3,
		},
		"a command that goes on": {
			[]string{
				serverStarted("1"), serverCall("a", "started"), serverUsage("1", 1, 1), serverSaid("still running"),
				serverUsage("1", 2, 1),
				serverCall("a", "completed"), serverSaid("done"), serverUsage("1", 3, 1),
			}, 3,
		},
		"two prompts": {
			[]string{
				serverStarted("1"), serverSaid("a"), serverUsage("1", 1, 1), serverCompleted("completed"),
				serverStarted("2"), serverSaid("b"), serverUsage("2", 2, 1), serverCompleted("completed"),
			}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(t, test.lines...).Turns; got != test.want {
				t.Errorf("%s: %d turns, want %d", name, got, test.want)
			}
		})
	}
}

func TestIDsOfTwoProcessesDoNotCollide(t *testing.T) {
	s := read(t, execStarted, execCall, execReturned, execSaid("a"), execCompleted(1, 0, 0), execStarted, execCall,
		execReturned, execSaid("b"), execCompleted(2, 0, 0))
	calls, results := map[string]bool{}, map[string]bool{}
	for _, event := range s.Events {
		if event.Tool != nil {
			calls[event.Tool.CallID] = true
		}
		if event.Result != nil {
			results[event.Result.CallID] = true
		}
	}
	if len(calls) != 2 || len(results) != 2 || s.Turns != 4 {
		t.Errorf("calls %v, results %v, %d turns", calls, results, s.Turns)
	}
}

func TestSubAgentsBelongToTheirCall(t *testing.T) {
	s := read(t,
		`{"method":"thread/started","params":{"thread":{"id":"T","model":"m"}}}`, serverStarted("1"),
		`{"method":"item/started","params":{"threadId":"T","item":{"type":"collabAgentToolCall","id":"spawn","tool":"spawnAgent","receiverThreadIds":["S"],"prompt":"look"}}}`,
		`{"method":"thread/started","params":{"thread":{"id":"S","parentThreadId":"T"}}}`,
		`{"method":"turn/started","params":{"threadId":"S","turn":{"id":"s1"}}}`,
		`{"method":"item/completed","params":{"threadId":"S","item":{"type":"agentMessage","id":"x","text":"looked"}}}`,
		`{"method":"thread/tokenUsage/updated","params":{"threadId":"S","turnId":"s1","tokenUsage":{"total":{"inputTokens":70},"last":{"inputTokens":70}}}}`,
		`{"method":"turn/completed","params":{"threadId":"S","turn":{"status":"failed","error":{"message":"the sub-agent's own trouble"}}}}`,
		serverUsage("1", 100, 100), serverSaid("done"), serverUsage("1", 200, 100), serverCompleted("completed"))
	if s.SessionID != "T" || s.Outcome != session.OutcomeSuccess || s.FinalText != "done" || s.Turns != 2 {
		t.Errorf("session %q, outcome %q, text %q, %d turns", s.SessionID, s.Outcome, s.FinalText, s.Turns)
	}
	if s.Usage.InputTokens != 270 {
		t.Errorf("usage with the sub-agent's: %+v", s.Usage)
	}
	for _, event := range s.Events {
		if event.Text == "looked" && event.Parent != "spawn" {
			t.Errorf("the sub-agent's message belongs to %q", event.Parent)
		}
	}
}

func TestFailuresAreToldApart(t *testing.T) {
	for message, want := range map[string]session.ErrorKind{
		`{"message":"Reconnecting... 2/5 (unexpected status 529 x)"}`:                                                     session.ErrorRetry,
		`{"message":"exceeded retry limit, last status: 429 Too Many Requests"}`:                                          session.ErrorRateLimit,
		`{"message":"unexpected status 529 <unknown status code>: overloaded"}`:                                           session.ErrorOverloaded,
		`{"message":"We’re currently experiencing high demand, which may cause temporary errors."}`:                       session.ErrorOverloaded,
		`{"message":"unexpected status 401 Unauthorized: no"}`:                                                            session.ErrorAuth,
		"{\"message\":\"Missing environment variable: `K`.\"}":                                                            session.ErrorAuth,
		`{"message":"Connection failed: error sending request"}`:                                                          session.ErrorAPI,
		`{"message":"You've hit your usage limit. Try again later."}`:                                                     session.ErrorRateLimit,
		`{"message":"Codex ran out of room in the model's context window."}`:                                              session.ErrorContextOverflow,
		`{"message":"{\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}"}`:                       session.ErrorContextOverflow,
		`{"message":"{\"error\":{\"message\":\"bad input\",\"type\":\"invalid_request_error\"}}"}`:                        session.ErrorAPI,
		`{"message":"x","codexErrorInfo":"unauthorized"}`:                                                                 session.ErrorAuth,
		`{"message":"x","codexErrorInfo":"contextWindowExceeded"}`:                                                        session.ErrorContextOverflow,
		`{"message":"x","codexErrorInfo":"cyberPolicy"}`:                                                                  session.ErrorRefusal,
		`{"message":"x","codex_error_info":"internal_server_error"}`:                                                      session.ErrorOverloaded,
		`{"message":"x","codexErrorInfo":{"responseTooManyFailedAttempts":{"httpStatusCode":429}}}`:                       session.ErrorRateLimit,
		`{"message":"Reconnecting... 1/1","additionalDetails":"gone","codexErrorInfo":{"responseStreamDisconnected":{}}}`: session.ErrorRetry,
	} {
		t.Run(message, func(t *testing.T) {
			if got := new(failureReader).read(parsed(t, message)); got.Kind != want {
				t.Errorf("%s: %+v, want %s", message, got, want)
			}
		})
	}
	retry := new(failureReader).read(parsed(t, `{"message":"Reconnecting... 3/5 (unexpected status 529 x)"}`))
	if retry.Attempt != 3 || retry.Status != 529 {
		t.Errorf("retry: %+v", retry)
	}
}

func TestAFailureIsToldOnce(t *testing.T) {
	s := read(t, execStarted, `{"type":"error","message":"unexpected status 401 x"}`,
		`{"type":"turn.failed","error":{"message":"unexpected status 401 x"}}`)
	if len(s.Events) != 1 || s.Outcome != session.OutcomeAuth {
		t.Errorf("%d events, outcome %q", len(s.Events), s.Outcome)
	}
}

func TestRolloutsOfModelsThatCallFromCode(t *testing.T) {
	line := func(kind, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00Z","type":%q,"payload":%s}`, kind, payload)
	}
	s := read(t, line("session_meta", `{"id":"T","cwd":"/r"}`), line("session_meta", `{"id":"the origin of the fork"}`),
		line("response_item", `{"type":"custom_tool_call","name":"exec","call_id":"js","input":"await tools.exec_command({cmd:'ls'})"}`),
		line("event_msg", `{"type":"item_completed","item":{"type":"CommandExecution","id":"inner","command":["/bin/bash","-c","cat a.go"],"exit_code":1,"status":"failed","aggregated_output":"no"}}`),
		line("response_item", `{"type":"custom_tool_call_output","call_id":"js","output":[{"type":"input_text","text":"no"}]}`),
		line("response_item", `{"type":"function_call","name":"shell","call_id":"old","arguments":"{\"command\":[\"bash\",\"-lc\",\"go test ./...\"]}"}`),
		line("response_item", `{"type":"function_call_output","call_id":"old","output":"{\"output\":\"FAIL\",\"metadata\":{\"exit_code\":2}}"}`),
		line("event_msg", `{"type":"token_count","info":null}`), line("event_msg",
			`{"type":"turn_aborted","reason":"interrupted"}`))
	want := map[string]string{"js": session.ToolOther, "inner": session.ToolRead, "old": session.ToolTest}
	failed := 0
	for _, event := range s.Events {
		if event.Tool != nil && want[event.Tool.CallID] != event.Tool.Effective() {
			t.Errorf("call %s is %s", event.Tool.CallID, event.Tool.Effective())
		}
		if event.Result != nil && event.Result.IsError {
			failed++
		}
	}
	if s.SessionID != "T" || s.Outcome != session.OutcomeAborted || failed != 2 {
		t.Errorf("session %q, outcome %q, %d failed results", s.SessionID, s.Outcome, failed)
	}
}

func TestDeltasRepeat(t *testing.T) {
	for line, want := range map[string]bool{
		`{"method":"item/agentMessage/delta","params":{"delta":"x"}}`:                                         true,
		`{"method":"item/commandExecution/outputDelta","params":{}}`:                                          true,
		`{"method":"item/completed","params":{"item":{"text":"\"method\":\"item/agentMessage/delta\""}}}`:     false,
		`{"method":"turn/completed","params":{}}`:                                                             false,
		`{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"\"delta\""},"x":"a delta"}`: false,
	} {
		t.Run(line, func(t *testing.T) {
			if got := isDelta([]byte(line)); got != want {
				t.Errorf("%s: %v", line, got)
			}
		})
	}
}

func TestLinesOfOthersAreNotRecognised(t *testing.T) {
	for _, line := range []string{
		`{"type":"error","message":"x"}`, `{"type":"session","id":"x","cwd":"/"}`, `{"type":"system","subtype":"init"}`,
		`{"id":1,"result":{}}`, `{"method":"initialize"}`,
		`{"type":"message_end","message":{}}`, `{"type":"response_item"}`, `[]`, `{`, `7`,
	} {
		if dialect, ok := session.Dialects(New().Dialects()).Of([]byte(line)); ok {
			t.Errorf("%s is taken for %s", line, dialect.Name)
		}
	}
}

// FuzzDialects reads anything between two good lines of each dialect; neither may be lost.
func FuzzDialects(f *testing.F) {
	for _, pattern := range []string{"testdata/0.166.0/*.jsonl", "testdata/rollout/*.jsonl"} {
		for _, file := range sessiontest.Recordings(f, pattern) {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			for line := range bytes.Lines(data) {
				f.Add(bytes.TrimSpace(line))
			}
		}
	}
	rollout := func(text string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}}`, text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("source")) && bytes.Contains(data, []byte("event")) {
			return // an envelope puts what it holds into a lane of its own
		}
		for _, said := range []func(string) string{execSaid, serverSaid, rollout} {
			s := read(t, said("first"), string(data), said("last"))
			sessiontest.Sound(t, s)
			found := 0
			for _, event := range s.Events {
				if event.Kind == session.KindMessage && (event.Text == "first" || event.Text == "last") {
					found++
				}
			}
			if found < 2 {
				t.Errorf("good lines were lost: %+v", s.Messages)
			}
		}
	})
}

// long writes a stream like those of long sessions: results of 200 B to 50 KB, and now and then a
// message, a change and a count of tokens.
func long(size int) []byte {
	var out bytes.Buffer
	words := strings.Repeat("the config module returns an error\n\tat line \"17\" of file.go: build failed \\ retry\n",
		800)
	out.WriteString(`{"method":"thread/started","params":{"thread":{"id":"T","model":"m","cwd":"/repo"}}}` + "\n" +
		serverStarted("1") + "\n")
	for i := 0; out.Len() < size; i++ {
		output, _ := json.Marshal(words[:200*(1<<(i%9))]) // a string always marshals
		call := fmt.Sprintf(`"type":"commandExecution","id":"call_%d","command":"/bin/bash -c 'go test ./...'","cwd":"/repo"`, i)
		for _, line := range []string{
			fmt.Sprintf(`{"method":"item/completed","params":{"threadId":"T","turnId":"1","item":{"type":"reasoning","id":"r","summary":[%q],"content":[]}}}`, words[:400]),
			fmt.Sprintf(`{"method":"item/started","params":{"threadId":"T","turnId":"1","item":{%s,"status":"inProgress"}}}`, call),
			fmt.Sprintf(`{"method":"item/completed","params":{"threadId":"T","turnId":"1","item":{%s,"status":"completed","exitCode":0,"aggregatedOutput":%s}}}`, call, output),
			serverUsage("1", i*1000, 1000),
		} {
			out.WriteString(line + "\n")
		}
	}
	return out.Bytes()
}

// BenchmarkEnrich reads a long stream in flat memory.
func BenchmarkEnrich(b *testing.B) {
	data := long(64 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		enricher := &session.Enricher{Dialects: New().Dialects(), Options: session.Options{Flat: true}}
		if err := enricher.Read(bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
		if sessions := enricher.Sessions(); len(sessions) != 1 || sessions[0].Turns == 0 {
			b.Fatal("nothing was read")
		}
	}
}

func parsed(t *testing.T, text string) jsontape.Value {
	t.Helper()
	var parser jsontape.Parser
	v, ok := parser.Parse([]byte(text))
	if !ok {
		t.Fatalf("%s is not JSON", text)
	}
	return v
}

// TestNothingThatIsRememberedIsAView: the bytes of an event are valid during the call only. A map
// keeps the key of its last assignment, not that of its first.
func TestNothingThatIsRememberedIsAView(t *testing.T) {
	fold, d, buffer := session.NewFold(session.Options{}), &decoder{}, make([]byte, 0, 1<<10)
	for prompt := 1; prompt <= 3; prompt++ {
		for _, line := range []string{
			`{"method":"turn/started","params":{"threadId":"THREAD","turn":{"id":"turn-%d"}}}`,
			`{"method":"item/started","params":{"threadId":"THREAD","item":{"type":"commandExecution","id":"call-%d","command":"ls"}}}`,
			`{"method":"item/completed","params":{"threadId":"THREAD","item":{"type":"commandExecution","id":"call-%d","command":"ls","exitCode":0,"status":"completed"}}}`,
			`{"method":"thread/tokenUsage/updated","params":{"threadId":"THREAD","turnId":"turn-%d","tokenUsage":{"total":{"inputTokens":1}}}}`,
			`{"method":"item/completed","params":{"threadId":"THREAD","item":{"type":"commandExecution","id":"call-%d","command":"ls","exitCode":0,"status":"completed"}}}`,
			`{"method":"item/completed","params":{"threadId":"THREAD","item":{"type":"agentMessage","id":"said-%d","text":"Done."}}}`,
			`{"method":"thread/tokenUsage/updated","params":{"threadId":"THREAD","turnId":"turn-%d","tokenUsage":{"total":{"inputTokens":2}}}}`,
			`{"method":"turn/completed","params":{"threadId":"THREAD","turn":{"id":"turn-%d","status":"completed"}}}`,
		} {
			buffer = fmt.Appendf(buffer[:0], line, prompt)
			d.Decode(buffer, session.Stamp{}, fold)
			clear(buffer)
		}
	}
	calls := 0
	s := fold.Session()
	for _, event := range s.Events {
		if event.Tool != nil {
			calls++
		}
	}
	if s.Turns != 6 || calls != 3 {
		t.Errorf("%d turns with %d calls, want 6 and 3", s.Turns, calls)
	}
}
