package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		// the server waits half a second for clients that it has refused in the middle of a request
		goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// realKey is what no agent may see.
const realKey = "sk-ant-the-real-key-that-stays-in-the-gateway"

// house is a gateway with one member.
type house struct {
	account *gateway.Account
	*gateway.Gateway
	t        *testing.T
	upstream string // its URL
	seat     *gateway.Seat
	mu       sync.Mutex
	calls    []calls.Call
	done     chan struct{} // gets a value for each call
	kept     *calls.Writer // nil: nothing is recorded
}

// open starts a gateway whose one member has this upstream for all protocols.
func open(t *testing.T, cfg gateway.Config, upstream http.HandlerFunc) *house {
	t.Helper()
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	return openAt(t, cfg, server.URL)
}

// openPaid is open with an account that pays for the calls.
func openPaid(t *testing.T, account *gateway.Account, cfg gateway.Config, upstream http.HandlerFunc) *house {
	t.Helper()
	h := open(t, cfg, upstream)
	h.account = account
	h.seat = h.join("agent", h.upstream)
	return h
}

func openAt(t *testing.T, cfg gateway.Config, url string) *house {
	t.Helper()
	h := &house{t: t, upstream: url, done: make(chan struct{}, 100)}
	var err error
	if h.Gateway, err = gateway.Start(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	h.seat = h.join("agent", url)
	return h
}

func (h *house) join(name, url string) *gateway.Seat {
	h.t.Helper()
	seat, err := h.Join(gateway.Member{
		Name:    name,
		Account: h.account,
		Calls:   h.kept,
		Upstreams: []gateway.Upstream{
			{Protocol: gateway.Anthropic, URL: url + "/v1", Header: gateway.APIKey(realKey)},
			{Protocol: gateway.Responses, URL: url + "/v1", Header: gateway.Bearer(realKey)},
			{Protocol: gateway.Chat, URL: url + "/v1", Header: gateway.Bearer(realKey)},
			{Protocol: string(model.Gemini), URL: url + "/v1beta", Header: http.Header{"X-Goog-Api-Key": {realKey}}},
		},
		OnCall: func(c calls.Call) {
			h.mu.Lock()
			h.calls = append(h.calls, c)
			h.mu.Unlock()
			h.done <- struct{}{}
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return seat
}

// last waits for the end of a call and returns it.
func (h *house) last() calls.Call {
	h.t.Helper()
	select {
	case <-h.done:
	case <-time.After(2 * time.Minute):
		h.t.Fatal("the call does not end")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[len(h.calls)-1]
}

// ask makes a call with the member's token.
func (h *house) ask(path, body string) (*http.Response, string) {
	h.t.Helper()
	resp, text, err := post(h.t.Context(), h.seat.URL+path, h.seat.Token, body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp, text
}

// begin makes a call whose reply is read by the caller.
func (h *house) begin(ctx context.Context) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.seat.URL+"/v1/messages",
		strings.NewReader(messageRequest))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.seat.Token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func post(ctx context.Context, url, token, body string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("X-Api-Key", token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

const (
	messageRequest = `{"model":"claude-sonnet-4-5","max_tokens":10,"stream":true,"messages":[]}`
	messageStart   = "event: message_start\n" +
		`data: {"type":"message_start","message":{"id":"m","model":"claude-sonnet-4-5","usage":{"input_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":1},"output_tokens":1}}}` + "\n\n"
	messageDelta = "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}` + "\n\n"
	messageEnd   = "event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}` + "\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

func stream(w http.ResponseWriter, pieces ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range pieces {
		_, _ = io.WriteString(w, piece)
		_ = http.NewResponseController(w).Flush()
	}
}

func TestCallsOfAllProtocolsPassWithTheirUsage(t *testing.T) {
	for _, test := range []struct {
		path, request, reply string
		stream               bool
		want                 session.TokenUsage
	}{
		{
			"/v1/messages", messageRequest, messageStart + messageDelta + messageEnd, true,
			session.TokenUsage{
				InputTokens: 7, OutputTokens: 42, CacheReadTokens: 3, CacheWriteTokens: 5, CacheWriteLongTokens: 1,
			},
		},
		{
			"/v1/messages", `{"model":"m"}`, `{"type":"message","model":"m","usage":{"input_tokens":1,"output_tokens":2}}`, false,
			session.TokenUsage{InputTokens: 1, OutputTokens: 2},
		},
		{
			"/v1/responses", `{"model":"m","stream":true}`,
			"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null,\"error\":null}}\n\n" +
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"m\",\"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":4},\"output_tokens\":6,\"output_tokens_details\":{\"reasoning_tokens\":2}}}}\n\n",
			true,
			session.TokenUsage{InputTokens: 6, OutputTokens: 6, CacheReadTokens: 4, ReasoningTokens: 2},
		},
		{
			"/v1/chat/completions", `{"model":"m","stream":true}`,
			"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\ndata: [DONE]\n\n",
			true,
			session.TokenUsage{InputTokens: 4, OutputTokens: 9, CacheReadTokens: 1},
		},
		{
			"/v1beta/models/gemini-3:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"x"}]}]}`,
			"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}],\"usageMetadata\":{\"promptTokenCount\":9,\"totalTokenCount\":9}}\r\n\r\n" +
				"data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"modelVersion\":\"gemini-3\",\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":4,\"candidatesTokenCount\":5,\"thoughtsTokenCount\":2,\"totalTokenCount\":16}}\r\n\r\n",
			true,
			session.TokenUsage{InputTokens: 5, OutputTokens: 7, CacheReadTokens: 4, ReasoningTokens: 2},
		},
	} {
		t.Run(test.path, func(t *testing.T) {
			h := open(t, gateway.Config{}, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.URL.String() != test.path || string(body) != test.request {
					t.Errorf("the upstream got %s %s", r.URL, body)
				}
				got := r.Header.Get("X-Api-Key") + r.Header.Get("Authorization") + r.Header.Get("X-Goog-Api-Key")
				if !strings.Contains(got, realKey) || strings.Contains(got, "fit-") {
					t.Errorf("the upstream got the key %q", got)
				}
				if !test.stream {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, test.reply)
					return
				}
				stream(w, test.reply)
			})
			resp, text := h.ask(test.path, test.request)
			if resp.StatusCode != http.StatusOK || text != test.reply {
				t.Errorf("got %d %q", resp.StatusCode, text)
			}
			c := h.last()
			if c.Outcome != calls.OK || c.Usage == nil || c.Usage.TokenUsage != test.want || c.Status != 200 ||
				c.Seq != 1 {
				t.Errorf("recorded %+v with usage %+v", c, c.Usage)
			}
		})
	}
}

// TestEventsAreNotHeldBack: each event reaches the client before the upstream sends the next.
func TestEventsAreNotHeldBack(t *testing.T) {
	proceed := make(chan struct{})
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		stream(w, messageStart)
		for range 3 {
			<-proceed
			stream(w, messageDelta)
		}
		<-proceed
		stream(w, messageEnd)
	})
	resp := h.begin(t.Context())
	defer resp.Body.Close()
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	read(messageStart)
	for range 3 {
		proceed <- struct{}{}
		read(messageDelta)
	}
	proceed <- struct{}{}
	read(messageEnd)
	h.last()
	http.DefaultClient.CloseIdleConnections()
}

// TestWhatIsNoCallOfAMemberIsRefused: one clear answer each, and the upstream sees none of them.
func TestWhatIsNoCallOfAMemberIsRefused(t *testing.T) {
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the upstream got %s %s", r.Method, r.URL)
	})
	gone := h.join("gone", "http://127.0.0.1:1")
	if err := gone.Leave(); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(h.URL(), "http://")
	key := "X-Api-Key: " + h.seat.Token + "\r\n"
	const unknown, proxied, paths = "does not know this key", "not a proxy for other hosts", "it serves /v1/messages"
	const absolute = "POST http://example.com/v1/messages"
	own, length := "Host: "+address+"\r\n", "Content-Length: 2\r\n\r\n{}"
	bomb := strings.Repeat("X-Bomb: "+strings.Repeat("x", 1000)+"\r\n", 200) + "\r\n"
	for name, test := range map[string]struct{ line, header, status, text string }{
		"wrong token":    {"POST /v1/messages", own + "X-Api-Key: " + h.seat.Token + "x\r\n" + length, "401", unknown},
		"no token":       {"POST /v1/messages", own + length, "401", unknown},
		"revoked token":  {"POST /v1/messages", own + "X-Api-Key: " + gone.Token + "\r\n" + length, "401", unknown},
		"connect":        {"CONNECT example.com:443", "Host: example.com:443\r\n" + key + "\r\n", "405", "no tunnels"},
		"another host":   {absolute, "Host: example.com\r\n" + key + length, "421", proxied},
		"another header": {"POST /v1/messages", "Host: example.com\r\n" + key + length, "421", proxied},
		"another path":   {"POST /v1/files", own + key + length, "404", paths},
		"dots":           {"POST /v1/messages/../files", own + key + length, "404", paths},
		"another method": {"DELETE /v1/messages", own + key + "\r\n", "405", "is asked with POST"},
		"header bomb":    {"POST /v1/messages", own + key + bomb, "431", "Request Header Fields Too Large"},
		"no HTTP":        {"\x16\x03\x01\x02\x00\x01\x00", "\r\n", "400", "Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
			request := test.line + " HTTP/1.1\r\n" + test.header
			go func() { _, _ = io.WriteString(conn, request) }() // a bomb is not read to its end
			var answer bytes.Buffer
			buffer := make([]byte, 4096)
			for !strings.Contains(answer.String(), test.text) {
				n, err := conn.Read(buffer)
				answer.Write(buffer[:n])
				if err != nil {
					break
				}
			}
			if got := answer.String(); !strings.HasPrefix(got, "HTTP/1.1 "+test.status+" ") ||
				!strings.Contains(got, test.text) {
				t.Errorf("got %q, want %s and %q", got, test.status, test.text)
			}
		})
	}
}

// closedListener was closed by its owner, and whoever accepts notices only when it is closed again.
type closedListener struct {
	net.Listener
	accepting, end chan struct{}
}

func (l closedListener) Accept() (net.Conn, error) {
	close(l.accepting)
	<-l.end
	return nil, net.ErrClosed
}

func (l closedListener) Close() error {
	close(l.end)
	return l.Listener.Close()
}

// The network of an agent closes the listener; the server may not have noticed yet.
func TestASeatIsLeftWhoseListenerIsClosedAlready(t *testing.T) {
	h := open(t, gateway.Config{}, func(http.ResponseWriter, *http.Request) {})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	closed := closedListener{listener, make(chan struct{}), make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- h.seat.Serve(closed) }()
	<-closed.accepting
	if err := h.seat.Leave(); err != nil {
		t.Error(err)
	}
	<-served
}

func TestASeatsOwnListenerTakesItsTokenOnly(t *testing.T) {
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) { stream(w, messageStart, messageEnd) })
	other := h.join("other", "http://127.0.0.1:1")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- h.seat.Serve(listener) }()
	url := fmt.Sprintf("http://%s/v1/messages", listener.Addr())
	for token, want := range map[string]int{h.seat.Token: http.StatusOK, other.Token: http.StatusUnauthorized} {
		t.Run(token, func(t *testing.T) {
			resp, text, err := post(t.Context(), url, token, messageRequest)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != want {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, want, text)
			}
		})
	}
	if err := h.seat.Leave(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("the listener ended with %v", err)
	}
}
