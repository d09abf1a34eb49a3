package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/gateway/calls"
)

// pipedGateway is a gateway without listeners whose upstream is at the other end of a pipe, so that
// time can be fake.
func pipedGateway(t *testing.T, upstream func(conn net.Conn)) (*Gateway, *Seat, *calls.Call) {
	t.Helper()
	g := &Gateway{
		cfg:       Config{Dir: t.TempDir(), IdleTimeout: time.Minute, Now: time.Now},
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

// TestAnUpstreamThatHangsIsGivenUp: before its reply, and in the middle of it.
func TestAnUpstreamThatHangsIsGivenUp(t *testing.T) {
	const begun = "event: message_start\ndata: {}\n\n"
	for name, test := range map[string]struct {
		says    string
		aborted bool
		status  int
		outcome string
	}{
		"before its reply": {"", false, http.StatusGatewayTimeout, calls.Failed},
		"in its reply": {
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + begun, true, http.StatusOK, calls.Cut,
		},
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
					_, _ = io.WriteString(conn, test.says)
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
				if took := time.Since(began); took != g.cfg.IdleTimeout {
					t.Errorf("given up after %s", took)
				}
				if w.Code != test.status || call.Outcome != test.outcome ||
					!strings.Contains(call.Error, "was silent for too long") {
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
