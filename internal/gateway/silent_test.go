package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/gateway/calls"
)

// patience is how long a silent upstream is waited for.
const patience = time.Minute

// pipedGateway is a gateway without listeners whose upstream is at the other end of a pipe, so that
// time can be fake.
func pipedGateway(t *testing.T, upstream func(conn net.Conn)) (*Gateway, *Seat, *calls.Call) {
	t.Helper()
	g := &Gateway{
		cfg:       Config{Dir: t.TempDir(), IdleTimeout: patience, Now: time.Now},
		transport: newTransport(),
		seats:     map[tokenHash]*Seat{},
	}
	g.transport.Proxy = nil
	g.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			upstream(theirs)
		}()
		return ours, nil
	}
	call := &calls.Call{}
	seat, err := g.Join(Member{
		Name:      "agent",
		Upstreams: []Upstream{{Protocol: Anthropic, URL: "http://model.invalid/v1"}},
		OnCall:    func(c calls.Call) { *call = c },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, seat, call
}

// TestAnUpstreamThatHangsIsGivenUp: before its reply, in the middle of it, and after it, where it
// says that it is alive and nothing else.
func TestAnUpstreamThatHangsIsGivenUp(t *testing.T) {
	const (
		ok    = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
		begun = "event: message_start\ndata: {}\n\n"
		ended = begun + "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	)
	for name, test := range map[string]struct {
		says    string
		aborted bool
		status  int
		outcome string
		reason  string
	}{
		"before its reply": {"", false, http.StatusGatewayTimeout, calls.Failed, "was silent for too long"},
		"in its reply":     {ok + begun, true, http.StatusOK, calls.Cut, "was silent for too long"},
		"after its reply":  {ok + ended, false, http.StatusOK, calls.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, seat, call := pipedGateway(t, func(conn net.Conn) {
					request, err := http.ReadRequest(bufio.NewReader(conn))
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					_, err = io.WriteString(conn, test.says)
					for test.outcome == calls.OK && err == nil {
						_ = conn.SetReadDeadline(time.Now().Add(patience / 4)) // a pipe has one
						if _, err = conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
							_, err = io.WriteString(conn, ": alive\n\n")
						}
					}
					_, _ = io.Copy(io.Discard, conn) // until it is given up
				})
				r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/v1/messages", strings.NewReader("{}"))
				r.Header.Set(TokenHeader, seat.Token)
				w := httptest.NewRecorder()
				began := time.Now()
				func() {
					defer func() {
						if aborted := recover() == http.ErrAbortHandler; aborted != test.aborted {
							t.Errorf("aborted: %v", aborted)
						}
					}()
					(&door{gateway: g}).ServeHTTP(w, r)
				}()
				if took := time.Since(began); took != patience {
					t.Errorf("given up after %s", took)
				}
				if w.Code != test.status || call.Outcome != test.outcome ||
					!strings.Contains(call.Error, test.reason) || test.reason == "" && call.Error != "" {
					t.Errorf("status %d, recorded %s %q", w.Code, call.Outcome, call.Error)
				}
				if test.aborted && w.Body.String() != begun {
					t.Errorf("the client got %q", w.Body)
				}
				g.transport.CloseIdleConnections()
			})
		})
	}
}
