package scripted_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const talkative = `{"turns": [
	{"thinking": "Hm.", "text": "Looking at it, with a text long enough to need several pieces.", "calls": [{"bash": "go test ./..."}],
	 "usage": {"input": 70, "output": 20, "cache_read": 30, "cache_write": 5, "reasoning": 4}},
	{"text": "All good."}
]}`

// post sends a request body and returns the answer.
func post(t *testing.T, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(data)
}

const hello = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`

func TestAConditionSeesTheWholeRequest(t *testing.T) {
	url := scriptedtest.ServeAll(t, map[string]string{
		"": `{"turns": [{"cases": [{"when": {"request": "Says \"hi\""}, "text": "given"}], "text": "absent"}]}`,
	}, scripted.Options{})
	for body, want := range map[string]string{
		hello: "absent",
		`{"model":"m","messages":[],"tools":[{"name":"Skill","description":"Says \u0022hi\u0022."}]}`: "given",
		`{"model":"m","messages":[],"system":[{"type":"text","text":"Says \"hi\"."}]}`:                "given",
		`{"model":"m","messages":[],"Says \"hi\"":1}`:                                                 "absent",
	} {
		t.Run(body, func(t *testing.T) {
			if _, reply := post(t, url+"/v1/messages", body); !strings.Contains(reply, `"`+want+`"`) {
				t.Errorf("%s", reply)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	url := scriptedtest.ServeAll(t,
		map[string]string{
			"":    `{"turns": [{"text": "root"}]}`,
			"a b": `{"turns": [{"text": "${key}|${seed}"}]}`,
		}, scripted.Options{})
	for path, want := range map[string]string{
		"/v1/messages": `"text":"root"`,
		"/messages":    `"text":"root"`,
		scripted.Path("a b", "", "") + "/v1/messages":             `"text":"|"`,
		scripted.Path("a b", "task/arm#~1", "3") + "/v1/messages": `"text":"task/arm#~1|3"`,
		"/c/k/v1/messages":          `"text":"root"`,
		"/s/nobody/v1/messages":     "no script is called",
		"/v1/nothing":               "there is nothing at",
		"/v1/messages/count_tokens": `"input_tokens":`,

		"/v1beta/models/m:generateContent":                                  `"text":"root"`,
		"/v1beta/models/m:streamGenerateContent?alt=sse":                    `"finishReason":"STOP"`,
		"/v1beta/models/m:countTokens":                                      `"totalTokens":`,
		"/v1beta/models/m:embedContent":                                     `"status":"NOT_FOUND"`,
		scripted.Path("a b", "k", "3") + "/v1beta/models/m:generateContent": `"text":"k|3"`,
	} {
		t.Run(path, func(t *testing.T) {
			if _, body := post(t, url+path, hello); !strings.Contains(body, want) {
				t.Errorf("%s", body)
			}
		})
	}
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		req, err := http.NewRequestWithContext(t.Context(), method, url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			t.Errorf("%s /: %s", method, reply.Status)
		}
	}
}

func TestTheScriptsKeyIsTheOnlyOneAccepted(t *testing.T) {
	url := scriptedtest.ServeAll(t, map[string]string{"": `{"key": "right", "turns": [{"text": "in"}]}`},
		scripted.Options{})
	for _, tt := range []struct {
		path, header, value string
		status              int
	}{
		{"/v1/messages", "x-api-key", "right", 200},
		{"/v1/messages", "x-api-key", "wrong", 401},
		{"/v1/messages", "Authorization", "Bearer right", 200},
		{"/v1/chat/completions", "Authorization", "Bearer right", 200},
		{"/v1/chat/completions", "Authorization", "Bearer wrong", 401},
		{"/v1/messages", "x", "y", 401},
		{"/v1beta/models/m:generateContent", "x-goog-api-key", "right", 200},
		{"/v1beta/models/m:streamGenerateContent?alt=sse", "x-goog-api-key", "wrong", 401},
		{"/v1beta/models/m:generateContent?key=right", "x", "y", 200},
	} {
		t.Run(tt.path, func(t *testing.T) {
			if status, body := post(t, url+tt.path, hello, tt.header, tt.value); status != tt.status {
				t.Errorf("with %s %q: %d %s", tt.header, tt.value, status, body)
			}
		})
	}
}

func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	url := scriptedtest.ServeAll(t, map[string]string{"": `{"turns": [{"text": "x"}]}`}, scripted.Options{})
	for _, path := range []string{
		"/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1beta/models/m:generateContent",
	} {
		for _, body := range []string{"", "not json", `{"messages": 5, "input": 5, "contents": 5}`} {
			if status, answer := post(t, url+path, body); status != http.StatusBadRequest {
				t.Errorf("%s %q: %d %s", path, body, status, answer)
			}
		}
	}
}

func TestFaultsCountPerConversation(t *testing.T) {
	url := scriptedtest.ServeAll(t,
		map[string]string{"": `{"turns": [{"text": "x", "fault": {"status": 500, "times": 2}}]}`}, scripted.Options{})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			body := strings.Replace(hello, "hello", fmt.Sprintf("conversation %d", i), 1)
			for attempt, want := range []int{500, 500, 200, 200} {
				if status, _ := post(t, url+"/v1/messages", body); status != want {
					t.Errorf("conversation %d, attempt %d: %d, want %d", i, attempt, status, want)
				}
			}
		})
	}
	group.Wait()
	// A cell of its own has counters of its own.
	if status, _ := post(t, url+"/c/other/v1/messages",
		strings.Replace(hello, "hello", "conversation 0", 1)); status != 500 {
		t.Errorf("another cell: %d", status)
	}
}

func TestClosingEndsRepliesThatHang(t *testing.T) {
	script, err := scripted.Parse([]byte(`{"turns": [{"text": "x", "fault": {"stream": "hang"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answering := make(chan struct{})
	inner := scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{})
	server, err := scripted.Listen("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(answering)
		inner.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		reply, err := http.Post(server.URL+"/v1/messages", "application/json",
			strings.NewReader(strings.Replace(hello, "{", `{"stream":true,`, 1))) //nolint:noctx // Close ends it
		if err == nil {
			_, _ = io.Copy(io.Discard, reply.Body)
			_ = reply.Body.Close()
		}
	})
	<-answering
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.com:80", "nonsense"} {
		if server, err := scripted.Listen(addr, http.NotFoundHandler()); err == nil {
			_ = server.Close()
			t.Errorf("%s was accepted", addr)
		}
	}
}

func TestRepliesDoNotDependOnTheClock(t *testing.T) {
	url := scriptedtest.ServeAll(t, map[string]string{"": talkative},
		scripted.Options{Now: func() time.Time { return time.Unix(0, 0) }})
	for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
		for _, body := range []string{hello, strings.Replace(hello, "{", `{"stream":true,`, 1)} {
			_, first := post(t, url+path, body)
			_, second := post(t, url+path, body)
			if first == "" || !bytes.Equal([]byte(first), []byte(second)) {
				t.Errorf("%s: two answers to one request:\n%s\n%s", path, first, second)
			}
		}
	}
}

func TestRequestsAreLoggedWithoutKeys(t *testing.T) {
	var log strings.Builder
	var records []scripted.Record
	url := scriptedtest.ServeAll(t, map[string]string{"one": talkative},
		scripted.Options{
			Log: &log, LogBodies: true,
			OnRequest: func(r scripted.Record) { records = append(records, r) },
		})
	if status, body := post(t, url+scripted.Path("one", "task a/arm b#1", "42")+"/v1/messages", hello, "x-api-key",
		"secret-key"); status != http.StatusOK {
		t.Fatal(body)
	}
	if strings.Contains(log.String(), "secret-key") {
		t.Error("the log holds the API key")
	}
	var logged scripted.Record
	if err := json.Unmarshal([]byte(log.String()), &logged); err != nil {
		t.Fatal(err)
	}
	asked := logged
	asked.Bytes, asked.DurationMs = 0, 0
	if diff := cmp.Diff(records, []scripted.Record{asked}); diff != "" {
		t.Error(diff)
	}
	if logged.Key != "task a/arm b#1" || logged.Seed != "42" || logged.Script != "one" ||
		logged.Protocol != "anthropic" || logged.Status != http.StatusOK {
		t.Errorf("%+v", logged)
	}
	if !strings.Contains(string(logged.Body), "hello") {
		t.Errorf("the body is %s", logged.Body)
	}
}

// Whoever gives up in the middle of an answer has been counted: tests decide by it what to do next.
func TestARequestIsCountedBeforeItsAnswer(t *testing.T) {
	counted := make(chan scripted.Record, 1)
	url := scriptedtest.ServeAll(t, map[string]string{"": `{"turns": [{"text": "Wait.", "fault": {"stream": "hang"}}]}`},
		scripted.Options{OnRequest: func(r scripted.Record) { counted <- r }})
	response, err := http.Post(url+"/v1/messages", "application/json",
		strings.NewReader(strings.Replace(hello, "{", `{"stream":true,`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	select {
	case r := <-counted:
		if r.Status != http.StatusOK || r.Protocol != "anthropic" {
			t.Errorf("%+v", r)
		}
	default:
		t.Error("the answer has begun, and its request is not counted")
	}
}

// Gemini's schemas have types in capitals, or are JSON Schemas under another name; a result may
// come under several keys, and its text beside it is no prompt.
func TestGeminisToolsAndResults(t *testing.T) {
	url := scriptedtest.Serve(t, `{"turns": [
		{"calls": [{"bash": "ls"}, {"read": "a.txt"}]},
		{"cases": [{"when": {"last_result": "two files", "prompt": "Look"}, "text": "I see."}], "text": "I see nothing."}
	]}`)
	const tools = `"tools": [{"functionDeclarations": [
		{"name": "run_shell_command", "parameters": {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}}},
		{"name": "read_file", "parametersJsonSchema": {"type": "object", "properties": {"file_path": {"type": "string"}}}}]}]`
	const prompt = `{"role": "user", "parts": [{"text": "Look around"}]}`
	address := url + "/v1beta/models/gemini-3-pro:generateContent"
	_, first := post(t, address, `{`+tools+`, "contents": [`+prompt+`]}`)
	for _, want := range []string{
		`"functionCall":{"id":"call_`, `"name":"run_shell_command","args":{"command":"ls"}`,
		`"name":"read_file","args":{"file_path":"a.txt"}`, `"finishReason":"STOP"`, `"modelVersion":"gemini-3-pro"`,
	} {
		if !strings.Contains(first, want) {
			t.Fatalf("no %s in %s", want, first)
		}
	}
	var reply struct {
		Candidates []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal([]byte(first), &reply); err != nil {
		t.Fatal(err)
	}
	for _, response := range []string{`{"output": "two files"}`, `{"result": "two files"}`, `{"n": ["two files"]}`} {
		_, second := post(t, address, `{`+tools+`, "contents": [`+prompt+`, `+string(reply.Candidates[0].Content)+`,
			{"role": "user", "parts": [{"functionResponse": {"name": "run_shell_command", "response": `+response+`}}, {"text": "remark"}]}]}`)
		if !strings.Contains(second, "I see.") {
			t.Errorf("%s: %s", response, second)
		}
	}
}
