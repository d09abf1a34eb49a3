package gateway_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/session"
)

// delta is a later report of usage in a stream that is complete.
func delta(usage string) string {
	return "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":" + usage + "}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
}

// TestUsageThatCannotBeIsUnknown: a figure is never negative, beyond all measure or less than it
// was before, and what is not said is not zero.
func TestUsageThatCannotBeIsUnknown(t *testing.T) {
	started := session.TokenUsage{
		InputTokens: 7, OutputTokens: 42, CacheReadTokens: 3, CacheWriteTokens: 5, CacheWriteLongTokens: 1,
	}
	for name, test := range map[string]struct {
		path, reply string
		want        *session.TokenUsage
	}{
		"negative":         {"/v1/messages", `{"usage":{"input_tokens":-1000000,"output_tokens":5}}`, nil},
		"negative details": {"/v1/responses", `{"usage":{"input_tokens":9,"output_tokens":5,"input_tokens_details":{"cached_tokens":-9}}}`, nil},
		"beyond measure":   {"/v1/messages", `{"usage":{"input_tokens":9223372036854775807,"output_tokens":9223372036854775807}}`, nil},
		"not a number":     {"/v1/messages", `{"usage":{"input_tokens":"10","output_tokens":5}}`, nil},
		"empty":            {"/v1/chat/completions", `{"usage":{}}`, nil},
		"of another kind":  {"/v1/chat/completions", `{"usage":{"input_tokens":3,"output_tokens":4}}`, nil},
		"half":             {"/v1/responses", `{"usage":{"output_tokens":4}}`, nil},
		"zero":             {"/v1/responses", `{"usage":{"input_tokens":0,"output_tokens":0}}`, nil},
		"nothing was read": {"/v1/messages", `{"usage":{"input_tokens":0,"output_tokens":50}}`, nil},
		"too much to read": {"/v1/messages", `{"usage":{"input_tokens":1000000000,"output_tokens":50}}`, nil},
		"stream: empty":    {"/v1/messages", `event: message_start` + "\n" + `data: {"message":{"usage":{}}}` + "\n\n" + delta(`{}`), nil},
		"stream: shrinks":  {"/v1/messages", messageStart + delta(`{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":42}`), &started},
		"null output":      {"/v1/messages", `{"usage":{"input_tokens":1000,"output_tokens":null}}`, nil},
		"null input":       {"/v1/responses", `{"usage":{"input_tokens":null,"output_tokens":100}}`, nil},
		"stream: null":     {"/v1/messages", messageStart + delta(`{"output_tokens":null}`), nil},
		"stream: no end":   {"/v1/messages", messageStart + delta(`null`), nil},
		"stream: negative": {"/v1/messages", messageStart + delta(`{"output_tokens":-42}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				if strings.HasPrefix(test.reply, "event:") {
					stream(w, test.reply)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.reply)
			})
			if _, text := h.ask(test.path, `{"model":"claude-sonnet-4-5"}`); text != test.reply {
				t.Errorf("the agent got %q", text)
			}
			c := h.last()
			if c.Outcome != calls.OK || (c.Usage == nil) != (test.want == nil) ||
				c.Usage != nil && c.Usage.TokenUsage != *test.want {
				t.Errorf("recorded %s with usage %+v, want %+v", c.Outcome, c.Usage, test.want)
			}
		})
	}
}

// TestImplausibleCountsAreNamed: what cannot be, or was not allowed, is in the record of the call.
func TestImplausibleCountsAreNamed(t *testing.T) {
	text := strings.Repeat("a long prompt ", 1000)
	for name, test := range map[string]struct {
		prompt, usage, want string
		known               bool
	}{
		"plausible":        {"", `{"input_tokens":9,"output_tokens":5}`, "", true},
		"far too many":     {"", `{"input_tokens":1000000000000,"output_tokens":5}`, "1000000000000 tokens", false},
		"less than none":   {"", `{"input_tokens":9,"output_tokens":-5}`, "-5 tokens", false},
		"text for nothing": {"", `{"input_tokens":9,"output_tokens":0}`, "0 tokens for a reply", false},
		"nothing was read": {"", `{"input_tokens":0,"output_tokens":5}`, "0 tokens of a prompt", false},
		"above the limit": {
			"", `{"input_tokens":9,"output_tokens":51}`, "51 tokens of output, where the request allowed 50", true,
		},
		"far too few": {
			text, `{"input_tokens":3,"output_tokens":5}`, "3 tokens of a prompt with 11067 bytes of text", true,
		},
		"a long prompt":       {text, `{"input_tokens":3000,"output_tokens":5}`, "", true},
		"a prompt in a cache": {text, `{"input_tokens":3,"cache_read_input_tokens":3000,"output_tokens":5}`, "", true},
		"a picture":           {strings.Repeat("iVBORw0KGgo", 2000), `{"input_tokens":20,"output_tokens":5}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"`+
					strings.Repeat("a long reply ", 20)+`"}],"usage":`+test.usage+`}`)
			})
			h.ask("/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":50,"messages":[{"role":"user","content":"`+
				test.prompt+`"}]}`)
			if c := h.last(); c.Implausible != test.want || (c.Usage != nil) != test.known {
				t.Errorf("%q with usage %+v", c.Implausible, c.Usage)
			}
		})
	}
}

// TestAServiceThatRepeatsTheKeyInAnError: some say which key they got. What a model says is passed
// on as it is, because the agent writes it to files, and a key may be an ordinary word; no record
// has the key.
func TestAServiceThatRepeatsTheKeyInAnError(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, key string){
		"whole": func(w http.ResponseWriter, key string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"content":"your key is `+key+` indeed"}`)
		},
		"error": func(w http.ResponseWriter, key string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"your key is `+key+` indeed"}}`)
		},
		"stream": func(w http.ResponseWriter, key string) {
			stream(w, "data: your key is ", key, " indeed\n\n")
		},
		"stream in pieces": func(w http.ResponseWriter, key string) {
			stream(w, append([]string{"data: your key is "}, append(strings.Split(key, ""), " indeed\n\n")...)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, gateway.Config{}, func(w http.ResponseWriter, r *http.Request) {
				key := r.Header.Get("X-Api-Key") + r.Header.Get("Authorization")
				w.Header().Set("Set-Cookie", "key="+key)
				w.Header().Set("X-Key", key)
				answer(w, key)
			})
			path := filepath.Join(t.TempDir(), "agent.calls")
			var err error
			if h.kept, err = calls.Create(path, calls.Config{}); err != nil {
				t.Fatal(err)
			}
			h.seat = h.join("agent", h.upstream)
			for _, path := range []string{"/v1/messages", "/v1/responses"} {
				resp, text := h.ask(path, `{"model":"m"}`)
				want := realKey + " indeed"
				if name == "error" {
					want = "[key] indeed"
				}
				if !strings.Contains(text, want) {
					t.Errorf("got %d %s", resp.StatusCode, text)
				}
				told := ""
				for name, values := range resp.Header {
					told += name + strings.Join(values, " ")
				}
				if c := h.last(); strings.Contains(told+c.Error, realKey) {
					t.Errorf("%s shows the key: %s; recorded %s", path, told, c.Error)
				}
			}
			if err := h.kept.Close(); err != nil {
				t.Fatal(err)
			}
			record, err := calls.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range record.Calls() {
				reply, err := record.Body(call.Response)
				if text := string(reply); err != nil || !strings.Contains(text, "[key] indeed") ||
					strings.Contains(text, realKey) {
					t.Errorf("the record has %s, %v", reply, err)
				}
			}
			if err := record.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAReplyWithoutUsageIsPaidFor: what nobody counted is counted by its length.
func TestAReplyWithoutUsageIsPaidFor(t *testing.T) {
	account := gateway.NewAccount("this run", gateway.Budget{Tokens: 1 << 20}, nil)
	h := openPaid(t, account, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"content":"`+strings.Repeat("word ", 10000)+`"}`)
	})
	h.ask("/v1/messages", `{"model":"m","max_tokens":20000,"messages":[]}`)
	h.last()
	if _, spent := account.Spent(); spent == 0 {
		t.Error("a reply of 50,000 characters cost nothing")
	}
}
