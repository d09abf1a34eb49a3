package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/testenv"
)

// hang keeps an upstream silent until its client has gone, which it notices only once it has read
// the request.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// dropConnection ends the connection of an upstream in the middle of what it says.
func dropConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// zeros writes n bytes that are no reply of a model.
func zeros(w io.Writer, n int) {
	chunk := make([]byte, 1<<20)
	for range n >> 20 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// packedZeros writes n bytes that are no reply of a model, compressed part by part.
func packedZeros(w io.Writer, n int) {
	var part bytes.Buffer
	packed := gzip.NewWriter(&part)
	zeros(packed, 1<<20)
	_ = packed.Close()
	for range n >> 20 {
		if _, err := w.Write(part.Bytes()); err != nil {
			return
		}
	}
}

// hostile are upstreams by what they do.
type hostile map[string]struct {
	upstream http.HandlerFunc
	status   int    // 0: the client sees that the reply is cut
	text     string // in what the client gets
	outcome  string
	reason   string // in the record
}

// meet asks each of them for something: each has one clear result, for the agent and in the record,
// and none hangs.
func (upstreams hostile) meet(t *testing.T) {
	for name, test := range upstreams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, gateway.Config{}, test.upstream)
			resp, text, err := post(t.Context(), h.seat.URL+"/v1/messages", h.seat.Token, messageRequest)
			if cut := errors.Is(err, io.ErrUnexpectedEOF); cut != (test.status == 0) || err != nil && !cut {
				t.Fatalf("the client got %v", err)
			}
			if test.status != 0 && resp.StatusCode != test.status {
				t.Errorf("status %d, want %d", resp.StatusCode, test.status)
			}
			if text = text[:min(len(text), 2000)]; !strings.Contains(text, test.text) {
				t.Errorf("the client got %q, want %q in it", text, test.text)
			}
			if c := h.last(); c.Outcome != test.outcome || !strings.Contains(c.Error, test.reason) ||
				c.Error != "" && test.reason == "" {
				t.Errorf("recorded %s %q, want %s with %q", c.Outcome, c.Error, test.outcome, test.reason)
			}
		})
	}
}

func TestHostileUpstreams(t *testing.T) {
	hostile{
		"dies in the stream": {
			func(w http.ResponseWriter, _ *http.Request) { stream(w, messageStart, messageDelta); dropConnection(w) },
			0, "hello", calls.Cut, "EOF",
		},
		"dies before it answers": {
			func(w http.ResponseWriter, _ *http.Request) { dropConnection(w) },
			502, "closed the connection before it answered", calls.Failed, "EOF",
		},
		"breaks off": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, `{"content":`)
			},
			502, "broke off its reply after 11 bytes", calls.Cut, "broke off",
		},
		"breaks off before it begins": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "1000")
			},
			502, "broke off its reply after 0 bytes", calls.Cut, "broke off",
		},
		"speaks no HTTP": {
			func(w http.ResponseWriter, _ *http.Request) {
				conn, buffer, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				_, _ = buffer.WriteString("220 mail.example.com ESMTP\r\n")
				_ = buffer.Flush()
				_ = conn.Close()
			},
			502, "gave no answer that can be read", calls.Failed, "malformed",
		},
		"ends too early": {
			func(w http.ResponseWriter, _ *http.Request) { stream(w, messageStart, messageDelta) },
			200, "hello", calls.Cut, "before the reply was complete",
		},
		"reports an error in the stream": {
			func(w http.ResponseWriter, _ *http.Request) {
				stream(w, messageStart, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")
			},
			200, "overloaded_error", calls.Failed, "overloaded_error: Overloaded",
		},
		"is a page": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html>Sign in</html>")
			},
			502, "answered with text/html", calls.Failed, "text/html",
		},
		"is a page about trouble": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "<html>Back soon</html>")
			},
			503, `"type":"error"`, calls.Failed, "Back soon",
		},
		"redirects": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://elsewhere.example.com/v1/messages", http.StatusTemporaryRedirect)
			},
			502, "https://elsewhere.example.com, which is not followed", calls.Failed, "307",
		},
		"says hold on": {
			func(w http.ResponseWriter, _ *http.Request) {
				for range 3 {
					w.WriteHeader(http.StatusEarlyHints)
				}
				stream(w, messageStart, messageEnd)
			},
			200, "message_stop", calls.OK, "",
		},
		"switches protocols": {
			func(w http.ResponseWriter, _ *http.Request) {
				conn, buffer, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				_, _ = buffer.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chess\r\n\r\n")
				_ = buffer.Flush()
				_ = conn.Close()
			},
			502, "status 101, which is not a model's reply", calls.Failed, "101",
		},
		"compresses": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", "gzip")
				packed := gzip.NewWriter(w)
				_, _ = io.WriteString(packed, messageStart+messageEnd)
				_ = packed.Close()
			},
			200, "message_stop", calls.OK, "",
		},
		"has a header bomb": {
			func(w http.ResponseWriter, _ *http.Request) {
				for i := range 2000 {
					w.Header().Set(fmt.Sprint("X-Bomb-", i), strings.Repeat("x", 1000))
				}
			},
			502, "gave no answer that can be read", calls.Failed, "server response headers exceeded",
		},
		"compresses badly": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = io.WriteString(w, "this is no gzip at all")
			},
			502, "compressed reply cannot be read", calls.Failed, "gzip",
		},
		"compresses strangely": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "br")
				_, _ = io.WriteString(w, "?")
			},
			502, "though it was asked not to", calls.Failed, "br",
		},
	}.meet(t)
}

func TestUpstreamsThatSendTooMuch(t *testing.T) {
	testenv.MuchData(t)
	hostile{
		"compresses 80 MB": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "gzip")
				packedZeros(w, 80<<20)
			},
			502, "sent more than 64 MiB", calls.Cut, "64 MiB",
		},
		"compresses 16 MB of an error": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "gzip")
				w.WriteHeader(http.StatusTooManyRequests)
				packedZeros(w, 16<<20)
			},
			429, "", calls.Failed, `\x00`,
		},
		"never ends": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, messageStart)
				piece := strings.Repeat(messageDelta, 8000)
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, piece)
				}
			},
			0, "hello", calls.Cut, "64 MiB",
		},
		"never ends a line": {
			func(w http.ResponseWriter, r *http.Request) {
				stream(w, messageStart)
				for r.Context().Err() == nil {
					zeros(w, 1<<20)
				}
			},
			0, "message_start", calls.Cut, "64 MiB",
		},
		"announces 200 MB": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", fmt.Sprint(200<<20))
				zeros(w, 200<<20)
			},
			502, "sent more than 64 MiB", calls.Cut, "64 MiB",
		},
		"sends 200 MB": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				zeros(w, 200<<20)
			},
			502, "sent more than 64 MiB", calls.Cut, "64 MiB",
		},
	}.meet(t)
}

func TestAnUpstreamThatIsNotThere(t *testing.T) {
	h := openAt(t, gateway.Config{}, "http://127.0.0.1:1")
	resp, text := h.ask("/v1/responses", `{"model":"m"}`)
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, "127.0.0.1:1 cannot be reached") ||
		strings.Contains(text, realKey) {
		t.Errorf("got %d %s", resp.StatusCode, text)
	}
	if c := h.last(); c.Outcome != calls.Failed || c.Status != 502 {
		t.Errorf("recorded %+v", c)
	}
}

// TestAClientThatLeavesEndsItsCall: the upstream notices, and so does the record.
func TestAClientThatLeavesEndsItsCall(t *testing.T) {
	left := make(chan struct{}, 2)
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, r *http.Request) {
		stream(w, messageStart)
		hang(r)
		left <- struct{}{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	resp := h.begin(ctx)
	if _, err := io.ReadFull(resp.Body, make([]byte, len(messageStart))); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	if c := h.last(); c.Outcome != calls.Disconnected || c.Usage == nil || c.Usage.InputTokens != 7 {
		t.Errorf("recorded %+v", c)
	}
	<-left
	if failed, others := h.seat.Failures(); failed != 0 || others != 1 {
		t.Errorf("%d failures and %d others, want none that was repeated", failed, others)
	}
	again, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.begin(again).Body.Close()
	if failed, _ := h.seat.Failures(); failed != 1 {
		t.Errorf("%d failures, want the call that was given up and repeated: its answer is drawn anew", failed)
	}
}

// TestAStreamThatOnlyKeepsItsConnectionOpenIsSilent: the time in which nothing came but pings and
// comments is time without an answer.
func TestAStreamThatOnlyKeepsItsConnectionOpenIsSilent(t *testing.T) {
	for name, sign := range map[string]string{
		"ping":      "event: ping\ndata: {\"type\": \"ping\"}\n\n",
		"comment":   ": keep-alive\n\n",
		"keepalive": "data: {\"type\":\"keepalive\",\"sequence_number\":7}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, gateway.Config{}, func(w http.ResponseWriter, r *http.Request) {
				stream(w, messageStart)
				for signs := time.NewTicker(10 * time.Millisecond); r.Context().Err() == nil; <-signs.C {
					stream(w, sign)
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			resp := h.begin(ctx)
			if _, err := io.ReadFull(resp.Body, make([]byte, len(messageStart))); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.ReadFull(resp.Body, make([]byte, 20*len(sign))); err != nil {
				t.Fatal(err)
			}
			nothing := time.Since(began)
			cancel()
			if c := h.last(); c.Outcome != calls.Disconnected {
				t.Errorf("recorded %+v", c)
			}
			if silent := h.seat.Unanswered(); silent < nothing/2 {
				t.Errorf("it was silent for %s only, of %s", silent, nothing)
			}
		})
	}
}

// TestClosingEndsRunningCalls: a gateway that closes leaves nothing behind that waits.
func TestClosingEndsRunningCalls(t *testing.T) {
	begun := make(chan struct{})
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, r *http.Request) {
		stream(w, messageStart)
		close(begun)
		hang(r)
	})
	ended := make(chan error, 1)
	go func() {
		_, _, err := post(context.WithoutCancel(t.Context()), h.seat.URL+"/v1/messages", h.seat.Token, messageRequest)
		ended <- err
	}()
	<-begun
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the client was not told that the reply is cut")
	}
	if c := h.last(); c.Outcome != calls.Disconnected {
		t.Errorf("recorded %+v", c)
	}
	if _, err := h.Join(gateway.Member{Name: "late"}); err == nil {
		t.Error("a closed gateway gave a seat")
	}
}

// TestAnEndlessRequestIsRefused: a request has a size that it can have at most.
func TestAnEndlessRequestIsRefused(t *testing.T) {
	h := open(t, gateway.Config{}, func(http.ResponseWriter, *http.Request) { t.Error("the upstream got it") })
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.seat.URL+"/v1/messages",
		io.LimitReader(endless{}, 200<<20))
	r.Header.Set("X-Api-Key", h.seat.Token)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return // the connection was closed before the answer was read, which is an answer too
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", resp.StatusCode)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestMemoryStaysFlatOverAStream: fifty thousand events leave nothing in the gateway: kept, they
// would be several megabytes.
func TestMemoryStaysFlatOverAStream(t *testing.T) {
	const events = 50_000
	half, proceed := make(chan struct{}), make(chan struct{})
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		stream(w, messageStart)
		for i := range events {
			if i == 100 || i == events-100 {
				half <- struct{}{}
				<-proceed
			}
			_, _ = io.WriteString(w, messageDelta)
		}
		stream(w, messageEnd)
	})
	resp := h.begin(t.Context())
	defer resp.Body.Close()
	go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
	heap := func() uint64 {
		<-half
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		proceed <- struct{}{}
		return stats.HeapAlloc
	}
	before, after := heap(), heap()
	if after > before+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if c := h.last(); c.Outcome != calls.OK || c.Usage.OutputTokens != 42 {
		t.Errorf("recorded %+v", c)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestAConnectionThatWasClosedMeanwhile: upstreams end connections that nobody uses; the agent does
// not notice, but the record does.
func TestAConnectionThatWasClosedMeanwhile(t *testing.T) {
	var used sync.Map // the connections of earlier requests; how soon one is used again depends on the machine
	var vanished atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			vanished.Add(1)
			dropConnection(w)
			return
		}
		if _, sent := r.Header["Idempotency-Key"]; sent || string(body) != messageRequest {
			t.Errorf("the upstream got %s with %v", body, r.Header)
		}
		stream(w, messageStart, messageEnd)
	}))
	server.Start()
	t.Cleanup(server.Close)
	h := openAt(t, gateway.Config{}, server.URL)
	for vanished.Load() == 0 {
		resp, text := h.ask("/v1/messages", messageRequest)
		if c := h.last(); resp.StatusCode != http.StatusOK || c.Outcome != calls.OK {
			t.Fatalf("got %d %s; recorded %+v", resp.StatusCode, text, c)
		}
	}
	if failed, _ := h.seat.Failures(); failed != 1 {
		t.Errorf("%d failures, want the request that was sent twice: the model may have answered it before", failed)
	}
}

// TestAReplyThatDoesNotEndIsCountedByWhatCame: the figure at the beginning of a stream is not its
// output.
func TestAReplyThatDoesNotEndIsCountedByWhatCame(t *testing.T) {
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		long := strings.Replace(messageDelta, "hello", strings.Repeat("word ", 80), 1)
		stream(w, messageStart, messageDelta, long)
		dropConnection(w)
	})
	_, _, err := post(t.Context(), h.seat.URL+"/v1/messages", h.seat.Token, messageRequest)
	if c := h.last(); err == nil || c.Usage == nil || !c.Usage.Partial || c.Usage.InputTokens != 7 ||
		c.Usage.OutputTokens < 90 || c.Usage.OutputTokens > 110 {
		t.Errorf("recorded %+v with %+v", c, c.Usage)
	}
}

// A model that searches by itself has no tool that could be removed.
func TestModelsThatSearchThemselvesAreDenied(t *testing.T) {
	for model, denied := range map[string]bool{
		"gpt-4o-search-preview": true, "gpt-5-search-api": true, "o3-deep-research-2025-06-26": true,
		"perplexity/sonar-pro": true, "claude-sonnet-4-5": false, "research-1": false,
	} {
		t.Run(model, func(t *testing.T) {
			var asked atomic.Int32
			policy := gateway.Policy{DenyServerTools: true}
			h := open(t, gateway.Config{Policy: policy}, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				_, _ = io.WriteString(w, "{}")
			})
			h.ask("/v1/chat/completions", `{"model":"`+model+`","messages":[]}`)
			if (asked.Load() == 0) != denied {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

func TestToolsAtTheVendorAreNamedAndDenied(t *testing.T) {
	for name, test := range map[string]struct{ path, request, want, denied string }{
		"messages": {
			"/v1/messages",
			`{"model":"m","tools":[{"name":"Bash","input_schema":{}},{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"auto"}}`,
			"[web_search_20250305]",
			`{"model":"m","tools":[{"name":"Bash","input_schema":{}},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"auto"}}`,
		},
		"responses": {
			"/v1/responses",
			`{"model":"m","tools":[{"type":"web_search"},{"type":"web_search"},{"type":"mcp","server_url":"x"}],"tool_choice":{"type":"web_search"}}`,
			"[web_search mcp]", `{"model":"m"}`,
		},
		"chat": {
			"/v1/chat/completions",
			`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"web_search_options":{}}`,
			"[web_search]", `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}]}`,
		},
		"a server of tools": {
			"/v1/messages", `{"mcp_servers":[{"type":"url","url":"https://example.com"}],"model":"m"}`, "[mcp]", `{"model":"m"}`,
		},
		"no servers": {"/v1/messages", `{"mcp_servers":[],"model":"m"}`, "[]", ""},
		"a choice of what is gone": {
			"/v1/messages",
			`{"model":"m","tools":[{"name":"Bash"},{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}}`,
			"[web_search_20250305]", `{"model":"m","tools":[{"name":"Bash"}]}`,
		},
		"a choice of what stays": {
			"/v1/chat/completions",
			`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}},"web_search_options":{}}`,
			"[web_search]",
			`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`,
		},
		"a plugin": {
			"/v1/chat/completions", `{"plugins":[{"id":"web"}],"model":"m"}`, "[plugin web]", `{"model":"m"}`,
		},
		"a model that is online": {"/v1/chat/completions", `{"model":"m:online"}`, "[online]", `{"model":"m"}`},
		"a search of x":          {"/v1/chat/completions", `{"model":"m","search_parameters":{"mode":"on"}}`, "[web_search]", `{"model":"m"}`},
		"nothing of the kind": {
			"/v1/chat/completions", `{"model":"m","web_search_options":null,"plugins":[]}`, "[]", "",
		},
		"tools that come later": {
			"/v1/responses",
			`{"model":"m","tools":[{"type":"web_search"}],"input":[{"type":"additional_tools","tools":[{"type":"web_search"},{"type":"custom","name":"exec"},{"type":"namespace","name":"n","tools":[{"type":"mcp"},{"type":"function","name":"f"}]}]},{"role":"user","content":"x"}]}`,
			"[web_search mcp]",
			`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"custom","name":"exec"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]},{"role":"user","content":"x"}]}`,
		},
		"hosted shells": {
			"/v1/responses",
			`{"model":"m","tools":[{"type":"shell","environment":{"type":"container_auto"}},{"type":"shell"},{"type":"shell","environment":{"type":"local"}},{"type":"local_shell"},{"type":"apply_patch"},{"type":"computer_use_preview"}]}`,
			"[shell in container_auto shell]",
			`{"model":"m","tools":[{"type":"shell","environment":{"type":"local"}},{"type":"local_shell"},{"type":"apply_patch"},{"type":"computer_use_preview"}]}`,
		},
		"a search of tools": {
			"/v1/responses",
			`{"model":"m","tools":[{"type":"tool_search"},{"type":"tool_search","execution":"client"},{"type":"tool_search","execution":"server"}]}`,
			"[tool_search]", `{"model":"m","tools":[{"type":"tool_search","execution":"client"}]}`,
		},
		"tools that nobody knows yet": {
			"/v1/messages",
			`{"model":"m","tools":[{"type":"web_browser_20290101","name":"b"},{"type":"bash_20290101","name":"bash"},{"type":"text_editor_20290101","name":"e"},{"type":"computer_20290101","name":"c"},{"type":"memory_20290101","name":"m"},{"type":"bash_hosted_20290101","name":"h"},{"type":["web_search"]},{"type":"Web_Search"},{"type":null,"name":"n"},{"type":"custom","name":"own"},7]}`,
			"[web_browser_20290101 bash_hosted_20290101 a tool of no known type Web_Search]",
			`{"model":"m","tools":[{"type":"bash_20290101","name":"bash"},{"type":"text_editor_20290101","name":"e"},{"type":"computer_20290101","name":"c"},{"type":"memory_20290101","name":"m"},{"type":null,"name":"n"},{"type":"custom","name":"own"}]}`,
		},
		"built-in functions": {
			"/v1/chat/completions",
			`{"model":"m","tools":[{"type":"builtin_function","function":{"name":"$web_search"}},{"function":{"name":"f"}},{"name":"web_search"}]}`,
			"[builtin_function a tool of no known type]", `{"model":"m","tools":[{"function":{"name":"f"}}]}`,
		},
		"tools in a conversation of any kind": {
			"/v1/responses",
			`{"model":"m","input":[{"type":"tool_search_output","tools":[{"type":"shell","environment":{"type":"container_reference"}},{"type":"function","name":"f"}]}]}`,
			"[shell in container_reference]",
			`{"model":"m","input":[{"type":"tool_search_output","tools":[{"type":"function","name":"f"}]}]}`,
		},
		"a machine of the vendor": {
			"/v1/messages", `{"model":"m","container":{"skills":[{"type":"anthropic","skill_id":"pptx"}]},"messages":[]}`,
			"[container]", `{"model":"m","messages":[]}`,
		},
		"no machine": {"/v1/messages", `{"model":"m","container":null,"messages":[]}`, "[]", ""},
		"a stored prefix, with tools of its own": {
			"/v1beta/models/m:generateContent", `{"cachedContent":"cachedContents/1","contents":[]}`,
			"[cachedContent]", `{"contents":[]}`,
		},
		"a stored prompt": {
			"/v1/responses", `{"model":"m","prompt":{"id":"pmpt_1"},"input":"x"}`, "[stored prompt]", `{"model":"m","input":"x"}`,
		},
		"other switches": {
			"/v1/chat/completions", `{"model":"m","enable_search":true,"search_options":{"x":1},"messages":[]}`,
			"[enable_search search_options]", `{"model":"m","messages":[]}`,
		},
		"images by address": {
			"/v1/messages",
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/?leak"}},{"type":"image","source":{"type":"base64","data":"aGk="}},{"type":"tool_result","content":[{"type":"document","source":{"type":"url","url":"https://x"}}]},{"type":"tool_use","input":{"url":"https://x","type":"image"}}]}]}`,
			"[image by URL document by URL]",
			`{"model":"m","messages":[{"role":"user","content":[` + taken("text") + `,{"type":"image","source":{"type":"base64","data":"aGk="}},{"type":"tool_result","content":[` + taken("text") + `]},{"type":"tool_use","input":{"url":"https://x","type":"image"}}]}]}`,
		},
		"files by address": {
			"/v1/responses",
			`{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_url":"https://x"},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]},{"type":"function_call_output","output":[{"type":"input_image","image_url":"http://x"}]}]}`,
			"[file by URL image by URL]",
			`{"model":"m","input":[{"role":"user","content":[` + taken("input_text") + `,{"type":"input_image","image_url":"data:image/png;base64,aGk="}]},{"type":"function_call_output","output":[` + taken("input_text") + `]}]}`,
		},
		"images by address in a chat": {
			"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}},{"type":"text","text":"https://x"}]}]}`,
			"[image by URL]",
			`{"model":"m","messages":[{"role":"user","content":[` + taken("text") + `,{"type":"text","text":"https://x"}]}]}`,
		},
		"gemini": {
			"/v1beta/models/gemini-3:generateContent",
			`{"contents":[{"role":"user","parts":[{"fileData":{"fileUri":"https://x"}},{"text":"hi"}]}],"tools":[{"googleSearch":{},"functionDeclarations":[{"name":"f"}]},{"url_context":{}}]}`,
			"[googleSearch url_context file by URL]",
			`{"contents":[{"role":"user","parts":[{"text":"(fit took out what the model's vendor would have fetched from an address)"},{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]}`,
		},
		"none": {"/v1/messages", `{"model":"m","tools":[{"type":"custom","name":"mcp__web_search"}]}`, "[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, deny := range []bool{false, true} {
				got := make(chan string, 1)
				policy := gateway.Policy{DenyServerTools: deny}
				h := open(t, gateway.Config{Policy: policy}, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					got <- string(body)
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, "{}")
				})
				h.ask(test.path, test.request)
				want := test.request
				if deny && test.denied != "" {
					want = test.denied
				}
				if body := <-got; body != want {
					t.Errorf("deny %v: the upstream got %s, want %s", deny, body, want)
				}
				c := h.last()
				if fmt.Sprint(c.ServerTools) != test.want || c.ToolsDenied != (deny && test.denied != "") {
					t.Errorf("deny %v: recorded %v, denied %v", deny, c.ServerTools, c.ToolsDenied)
				}
			}
		})
	}
}

func taken(kind string) string {
	return `{"type":"` + kind + `","text":"(fit took out what the model's vendor would have fetched from an address)"}`
}

// TestARequestThatCanBeReadInTwoWaysIsRefused: the vendor must not read another one than we do.
func TestARequestThatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	h := open(t, gateway.Config{}, func(http.ResponseWriter, *http.Request) { t.Error("the upstream got it") })
	for request, want := range map[string]string{
		`{"model":"m","tools":[{"type":"web_search"}],"tools":[]}`:      `has "tools" twice`,
		`{"model":"m","tools":[],"t\u006fols":[{"type":"web_search"}]}`: `has "tools" twice`,
		`{"model":"m","Tools":[{"type":"web_search"}]}`:                 `has "Tools" in place of "tools"`,
		`{"model":"m","max_tokens":1,"MAX_TOKENS":9}`:                   `has "max_tokens" twice`,
		`{"model":"m","tools":[{"type":"custom","type":"web_search"}]}`: `has "type" twice`,
		"{\"model\":\"m\",\"tool\u017f\":[{\"type\":\"web_search\"}]}":  `in place of "tools"`,
		`{"model":"m","too\uff4cs":[{"type":"web_search"}]}`:            `in place of "tools"`,
		`{"model":"m","input":[{"tools":[],"toolſ":[{"type":"mcp"}]}]}`: `has "toolſ" twice`,
		`{"model":"m","input":[{"tools":[],"tools":[{"type":"mcp"}]}]}`: `has "tools" twice`,
		"{\"model\":\"m\",\"tools\xff\":[{\"type\":\"web_search\"}]}":   `not a JSON object in UTF-8`,
		`{"model":"m","tools\udc00":[{"type":"web_search"}]}`:           `a name that is not text`,
	} {
		t.Run(request, func(t *testing.T) {
			resp, text := h.ask("/v1/responses", request)
			var said struct{ Error struct{ Message string } }
			_ = json.Unmarshal([]byte(text), &said)
			if c := h.last(); resp.StatusCode != http.StatusBadRequest || !strings.Contains(said.Error.Message, want) ||
				!strings.Contains(c.Error, want) {
				t.Errorf("got %d %s; recorded %q", resp.StatusCode, text, c.Error)
			}
		})
	}
}

// TestOnlyKnownPathsAndHeadersPass: what the gateway does not know the vendor may take for
// something else.
func TestOnlyKnownPathsAndHeadersPass(t *testing.T) {
	got := make(chan *http.Request, 100)
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, r *http.Request) {
		got <- r
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	for path, known := range map[string]bool{
		"/v1/responses":                    true,
		"/v1/responses/compact":            true,
		"/v1/responses/input_tokens":       true,
		"/v1/responses/resp_1/cancel":      true,
		"/v1/responses/x/y/z":              false,
		"/v1/responses/x/y/cancel":         false,
		"/v1/responses/x":                  false,
		"/v1/responses/":                   false,
		"/v1/responses/%2e%2e/files":       false,
		"/v1/responses/x%2Fy/cancel":       false,
		"/v1/messages/batches":             false,
		"/v1/files":                        false,
		"/v1/models/a/b/c/d":               false,
		"/v1/chat/completions/x/messages":  false,
		"/v1/containers":                   false,
		"/v1beta/models/gemini-3:generate": false,
	} {
		t.Run(path, func(t *testing.T) {
			body := strings.NewReader(`{"model":"m"}`)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.seat.URL+path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+h.seat.Token)
			r.Header.Set("Anthropic-Beta", "kept")
			for _, name := range []string{
				"Cookie", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL",
				"X-Rewrite-URL",
				"X-Forwarded-Host", "X-Forwarded-Proto",
			} {
				r.Header.Set(name, "DELETE=/v1/files")
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if !known {
				if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
					t.Errorf("gives %d", resp.StatusCode)
				}
				return
			}
			if resp.StatusCode != http.StatusOK {
				t.Errorf("gives %d", resp.StatusCode)
				return
			}
			for name, values := range (<-got).Header {
				if strings.Contains(values[0], "DELETE") {
					t.Errorf("the upstream gets %s", name)
				}
			}
		})
	}
}
