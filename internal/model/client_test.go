package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/price"
)

var protocols = []model.Protocol{model.Anthropic, model.Responses, model.Chat, model.Gemini}

// connect returns a client that retries without waiting.
func connect(t *testing.T, cfg model.Config) model.Client {
	t.Helper()
	if cfg.Sleep == nil {
		cfg.Sleep = func(context.Context, time.Duration) error { return nil }
	}
	client, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func question() model.Request {
	return model.Request{
		Model: "test-model", System: "You are terse.", MaxTokens: 1000,
		Messages: []model.Message{model.UserText("Fix Add")},
		Tools: []model.Tool{
			{
				Name: "Bash", Description: "Runs a command.",
				Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`),
			},
			{
				Name: "Read", Description: "Reads a file.",
				Schema: json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string"}}}`),
			},
		},
	}
}

// eachProtocol runs a test for every protocol.
func eachProtocol(t *testing.T, test func(t *testing.T, protocol model.Protocol)) {
	t.Helper()
	for _, protocol := range protocols {
		t.Run(string(protocol), func(t *testing.T) { test(t, protocol) })
	}
}

const toolScript = `{"turns": [
	{"thinking": "Look first.", "text": "I'll look. Ünïcödé.", "calls": [{"read": "calc.go"}, {"bash": "ls"}], "usage": {"input": 70, "output": 20, "cache_read": 30, "cache_write": 5, "reasoning": 4}},
	{"cases": [{"when": {"last_result": "two files"}, "text": "I see two files."}], "text": "I see nothing."}
]}`

func TestAConversationWithTools(t *testing.T) {
	url := scriptedtest.Serve(t, toolScript)
	eachProtocol(t, func(t *testing.T, protocol model.Protocol) {
		client := connect(t, model.Config{Protocol: protocol, ModelURL: url})
		req := question()
		first, err := client.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if first.StopReason != model.StopToolUse || first.Text() != "I'll look. Ünïcödé." || first.Attempts != 1 {
			t.Errorf("first reply: %+v", first)
		}
		want := price.TokenUsage{
			InputTokens: 70, OutputTokens: 20, CacheReadTokens: 30, CacheWriteTokens: 5, ReasoningTokens: 4,
		}
		if protocol == model.Gemini { // which does not tell what was written to a cache
			want.InputTokens, want.CacheWriteTokens = 75, 0
		}
		anyReasoning := cmpopts.IgnoreFields(price.TokenUsage{}, "ReasoningTokens")
		if diff := cmp.Diff(want, first.Usage, anyReasoning); diff != "" {
			t.Errorf("usage: %s", diff)
		}
		calls := first.ToolCalls()
		if len(calls) != 2 || calls[0].Name != "Read" || string(calls[0].Input) != `{"file_path":"calc.go"}` ||
			calls[1].Name != "Bash" {
			t.Fatalf("calls: %+v", calls)
		}

		// The conversation must survive being stored, as an agent's session is.
		stored, err := json.Marshal(append(req.Messages, model.Message{Role: model.Assistant, Blocks: first.Blocks}))
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = nil
		if err := json.Unmarshal(stored, &req.Messages); err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, model.Message{Role: model.User, Blocks: []model.Block{
			{Type: model.BlockToolResult, Result: &model.ToolResult{
				CallID: calls[0].ID, Text: "no such file",
				IsError: true,
			}},
			{Type: model.BlockToolResult, Result: &model.ToolResult{CallID: calls[1].ID, Text: "two files"}},
		}})
		second, err := client.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if second.Text() != "I see two files." || second.StopReason != model.StopEndTurn {
			t.Errorf("second reply: %+v", second)
		}
	})
}

func TestErrorsAreToldApart(t *testing.T) {
	for name, tt := range map[string]struct {
		fault     string
		kind      model.Kind
		retryable bool
	}{
		"auth":            {`{"status": 401}`, model.KindAuth, false},
		"permission":      {`{"status": 403}`, model.KindAuth, false},
		"rate limit":      {`{"status": 429}`, model.KindRateLimit, true},
		"overloaded":      {`{"status": 529}`, model.KindOverloaded, true},
		"server":          {`{"status": 500}`, model.KindServer, true},
		"invalid request": {`{"status": 400, "message": "tools.0: bad name"}`, model.KindInvalidRequest, false},
		"unknown model":   {`{"status": 404}`, model.KindInvalidRequest, false},
		"context overflow": {
			`{"status": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"}`,
			model.KindContextOverflow, false,
		},
		"overflow by code": {`{"status": 400, "code": "context_length_exceeded", "message": "Your input exceeds the context window"}`, model.KindContextOverflow, false},
		"throttled by tokens": {
			`{"status": 400, "type": "ThrottlingException", "message": "Too many tokens, please wait."}`,
			model.KindQuota, false,
		},
		"too large": {`{"status": 413}`, model.KindContextOverflow, false},
		"out of quota": {
			`{"status": 429, "type": "insufficient_quota", "code": "insufficient_quota"}`,
			model.KindQuota, false,
		},
		"dropped": {`{"stream": "drop"}`, model.KindNetwork, true},
	} {
		t.Run(name, func(t *testing.T) {
			url := scriptedtest.Serve(t, `{"turns": [{"fault": `+tt.fault+`}]}`)
			eachProtocol(t, func(t *testing.T, protocol model.Protocol) {
				client := connect(t, model.Config{Protocol: protocol, ModelURL: url, MaxRetries: 1})
				_, err := client.Complete(t.Context(), question())
				var failure *model.Error
				if !errors.As(err, &failure) {
					t.Fatalf("got %v, want a *model.Error", err)
				}
				attempts := 1
				if tt.retryable {
					attempts = 2
				}
				if failure.Kind != tt.kind || failure.Retryable != tt.retryable || failure.Attempts != attempts {
					t.Errorf("kind %s, retryable %v, attempts %d; want %s, %v, %d: %v", failure.Kind, failure.Retryable,
						failure.Attempts, tt.kind, tt.retryable, attempts, err)
				}
			})
		})
	}
}

func TestRefusalIsAnErrorThatWasPaidFor(t *testing.T) {
	url := scriptedtest.Serve(t, `{"turns": [{"stop": "refusal", "text": "I can't help with that.", "usage": {"input": 10, "output": 5}}]}`)
	eachProtocol(t, func(t *testing.T, protocol model.Protocol) {
		reply, err := connect(t, model.Config{Protocol: protocol, ModelURL: url}).Complete(t.Context(), question())
		if kindOf(err) != model.KindRefusal || reply.Usage.InputTokens != 10 ||
			reply.Text() != "I can't help with that." {
			t.Errorf("reply %+v, error %v", reply, err)
		}
	})
}

func TestAReplyCutShortByItsLimitSaysSo(t *testing.T) {
	url := scriptedtest.Serve(t, `{"turns": [{"stop": "max_tokens", "text": "and then"}]}`)
	eachProtocol(t, func(t *testing.T, protocol model.Protocol) {
		reply, err := connect(t, model.Config{Protocol: protocol, ModelURL: url}).Complete(t.Context(), question())
		if err != nil || reply.StopReason != model.StopMaxTokens || reply.Text() != "and then" {
			t.Errorf("reply %+v, error %v", reply, err)
		}
	})
}

func TestPassingFaultsAreRetried(t *testing.T) {
	for _, fault := range []string{
		`{"status": 529, "times": 2}`, `{"status": 500, "times": 2}`, `{"status": 429, "retry_after": "1", "times": 2}`,
		`{"stream": "drop", "times": 2}`,
	} {
		t.Run(fault, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol model.Protocol) {
				url := scriptedtest.Serve(t, `{"turns": [{"text": "There.", "fault": `+fault+`}]}`)
				var retries []model.RetryInfo
				client := connect(t, model.Config{
					Protocol: protocol, ModelURL: url,
					OnRetry: func(i model.RetryInfo) { retries = append(retries, i) },
				})
				reply, err := client.Complete(t.Context(), question())
				if err != nil || reply.Text() != "There." || reply.Attempts != 3 || len(retries) != 2 {
					t.Fatalf("reply %+v, error %v, %d retries", reply, err, len(retries))
				}
				if strings.Contains(fault, "retry_after") && retries[0].Delay < time.Second {
					t.Errorf("waited %v, the server asked for 1s", retries[0].Delay)
				}
			})
		})
	}
}

const brokenReply = `{"turns": [{"text": "A text that is long enough to be cut into several pieces, so that half of it is not nothing.", "fault": {"stream": %, "times": 1}}]}`

func TestABrokenReplyIsRetried(t *testing.T) {
	for _, protocol := range protocols {
		url := scriptedtest.Serve(t, strings.Replace(brokenReply, "%", `"cut"`, 1))
		reply, err := connect(t, model.Config{Protocol: protocol, ModelURL: url}).Complete(t.Context(), question())
		if err != nil || reply.Attempts != 2 {
			t.Errorf("%s: reply %+v, error %v", protocol, reply, err)
		}
	}
}

func TestASilentEndpointIsGivenUp(t *testing.T) {
	for _, protocol := range protocols {
		url := scriptedtest.Serve(t, `{"turns": [{"text": "some words to begin with and more of them", "fault": {"stream": "hang"}}]}`)
		client := connect(t, model.Config{
			Protocol: protocol, ModelURL: url, MaxRetries: -1,
			IdleTimeout: 50 * time.Millisecond,
		})
		if _, err := client.Complete(t.Context(), question()); kindOf(err) != model.KindNetwork ||
			!strings.Contains(err.Error(), "silent") {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func TestCancellingEndsARequestAtOnce(t *testing.T) {
	url := scriptedtest.Serve(t, `{"turns": [{"text": "some words to begin with and more of them", "fault": {"stream": "hang"}}]}`)
	for _, protocol := range protocols {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := connect(t, model.Config{Protocol: protocol, ModelURL: url}).Complete(ctx, question())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", protocol, err)
		}
		cancel()
	}
}

func TestInvalidToolInputIsKeptApart(t *testing.T) {
	url := scriptedtest.Serve(t, `{"turns": [{"calls": [{"tool": "Bash", "raw": "{\"command\": "}]}]}`)
	for _, protocol := range protocols {
		reply, err := connect(t, model.Config{Protocol: protocol, ModelURL: url}).Complete(t.Context(), question())
		var failure *model.Error
		if protocol == model.Gemini { // whose service keeps such a call to itself
			if !errors.As(err, &failure) || failure.Kind != model.KindProtocol || !failure.Retryable {
				t.Errorf("%s: %v", protocol, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		call := reply.ToolCalls()[0]
		wrote := `{"command": `
		if protocol == model.Anthropic { // in whose replies an input is JSON
			wrote = ""
		}
		if string(call.Input) != "{}" || call.InvalidInput != wrote {
			t.Errorf("%s: %+v", protocol, call)
		}
		if _, err := json.Marshal(reply.Blocks); err != nil {
			t.Errorf("%s: cannot be stored: %v", protocol, err)
		}
	}
}

func TestBaseURLsMeanWhatTheyMeanToTheVendors(t *testing.T) {
	var path, key, goog, bearer atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.URL.Path)
		key.Store(r.Header.Get("x-api-key"))
		goog.Store(r.Header.Get("x-goog-api-key"))
		bearer.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	for _, tt := range []struct {
		cfg  model.Config
		want string
	}{
		{model.Config{Protocol: model.Anthropic, BaseURL: server.URL}, "/v1/messages"},
		{model.Config{Protocol: model.Anthropic, BaseURL: server.URL + "/proxy/"}, "/proxy/v1/messages"},
		{model.Config{Protocol: model.Responses, BaseURL: server.URL + "/v1"}, "/v1/responses"},
		{model.Config{Protocol: model.Chat, BaseURL: server.URL + "/v1/"}, "/v1/chat/completions"},
		{model.Config{Protocol: model.Chat, BaseURL: server.URL + "/openai"}, "/openai/chat/completions"},
		{model.Config{Protocol: model.Gemini, BaseURL: server.URL}, "/v1beta/models/test-model:generateContent"},
		{
			model.Config{Protocol: model.Gemini, ModelURL: server.URL + "/s/x"},
			"/s/x/v1beta/models/test-model:generateContent",
		},
		{
			model.Config{Protocol: model.Anthropic, ModelURL: server.URL + "/s/a/c/k/seed/1"},
			"/s/a/c/k/seed/1/v1/messages",
		},
		{
			model.Config{Protocol: model.Chat, ModelURL: server.URL, BaseURL: "http://unused.invalid"},
			"/v1/chat/completions",
		},
		{model.Config{Protocol: model.Responses, ModelURL: server.URL + "/v1/"}, "/v1/responses"},
	} {
		tt.cfg.APIKey = "key-1"
		if _, err := connect(t, tt.cfg).Complete(t.Context(), question()); kindOf(err) != model.KindServer {
			t.Fatalf("%+v: %v", tt.cfg, err)
		}
		if path.Load() != tt.want {
			t.Errorf("%s %s%s: asked %v, want %s", tt.cfg.Protocol, tt.cfg.BaseURL, tt.cfg.ModelURL, path.Load(),
				tt.want)
		}
		sent := map[model.Protocol]any{model.Anthropic: key.Load(), model.Gemini: goog.Load()}
		want, got := any("key-1"), sent[tt.cfg.Protocol]
		if got == nil {
			want, got = "Bearer key-1", bearer.Load()
		}
		if got != want {
			t.Errorf("%s: the key was sent as %q", tt.cfg.Protocol, got)
		}
	}
	for _, bad := range []model.Config{
		{},
		{Protocol: "grpc"},
		{Protocol: model.Chat, BaseURL: "localhost:8080"},
		{Protocol: model.Chat, ModelURL: "file:///etc"},
	} {
		if _, err := model.New(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestConfigFromEnvReadsTheVendorsVariables(t *testing.T) {
	env := map[string]string{
		"ANTHROPIC_API_KEY": "a", "ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": "http://a", "OPENAI_API_KEY": "o",
		"OPENAI_BASE_URL": "http://o/v1",
	}
	getenv := func(name string) string { return env[name] }
	if c := model.ConfigFromEnv(model.Anthropic, getenv); c.APIKey != "a" || c.AuthToken != "t" ||
		c.BaseURL != "http://a" {
		t.Errorf("%+v", c)
	}
	if c := model.ConfigFromEnv(model.Chat, getenv); c.APIKey != "o" || c.BaseURL != "http://o/v1" {
		t.Errorf("%+v", c)
	}
}

// kindOf is the kind of a model error anywhere in err's chain, or the empty kind.
func kindOf(err error) model.Kind {
	var e *model.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// TestUsageThatIsToldInPartIsUnknown: a figure that a reply leaves out, or that is null, is not
// zero, or half a reply would be free.
func TestUsageThatIsToldInPartIsUnknown(t *testing.T) {
	for protocol, forms := range map[model.Protocol][3]string{ // the reply, and the names of the figures
		model.Anthropic: {
			`{"id":"m","type":"message","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","usage":%s}`,
			"input_tokens", "output_tokens",
		},
		model.Responses: {`{"id":"r","status":"completed","output":[{"type":"message","role":"assistant",` +
			`"content":[{"type":"output_text","text":"Hi."}]}],"usage":%s}`, "input_tokens", "output_tokens"},
		model.Chat: {
			`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":%s}`,
			"prompt_tokens", "completion_tokens",
		},
		model.Gemini: {`{"responseId":"g","candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]},` +
			`"finishReason":"STOP"}],"usageMetadata":%s}`, "promptTokenCount", "candidatesTokenCount"},
	} {
		t.Run(string(protocol), func(t *testing.T) {
			in, out := `"`+forms[1]+`":1000`, `"`+forms[2]+`":100`
			if protocol == model.Gemini {
				out += `,"totalTokenCount":1100`
			}
			null := strings.NewReplacer("1000", "null", "1100", "null", "100", "null").Replace
			whole := price.TokenUsage{InputTokens: 1000, OutputTokens: 100}
			for usage, want := range map[string]price.TokenUsage{
				"{" + in + "," + out + "}":       whole,
				"{" + in + "," + null(out) + "}": {},
				"{" + null(in) + "," + out + "}": {},
				"{" + in + "}":                   {},
				"{" + out + "}":                  {},
				"null":                           {},
			} {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprintf(w, forms[0], usage)
				}))
				defer server.Close()
				client := connect(t, model.Config{Protocol: protocol, ModelURL: server.URL})
				reply, err := client.Complete(t.Context(), question())
				if err != nil || reply.Text() != "Hi." || reply.Usage != want {
					t.Errorf("%s: %q, usage %+v, %v", usage, reply.Text(), reply.Usage, err)
				}
			}
		})
	}
}
