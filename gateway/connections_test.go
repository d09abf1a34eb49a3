package gateway_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/gateway"
)

// TestManyConnectionsAreNobodysTrouble: an agent that opens connections and sends next to nothing
// over them, with its token or without, loses its oldest, and the calls of others pass meanwhile.
func TestManyConnectionsAreNobodysTrouble(t *testing.T) {
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	hostile, err := h.Join(gateway.Member{
		Name:      "hostile",
		Upstreams: []gateway.Upstream{{Protocol: gateway.Anthropic, URL: "http://127.0.0.1:9/v1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		request string
		opened  int
		left    int // at most
	}{
		"half a header": {"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", 300, 128},
		"half a body": {
			"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: " + hostile.Token +
				"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", 700, 512,
		},
	} {
		t.Run(name, func(t *testing.T) {
			conns := make([]net.Conn, 0, test.opened)
			for range test.opened {
				conn, err := net.Dial("tcp", strings.TrimPrefix(hostile.URL, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, test.request) // it may be closed already
				conns = append(conns, conn)
			}
			// The oldest end, in about the order in which they came.
			for i, conn := range conns[:(test.opened-test.left)/2] {
				_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("connection %d of %d is still open", i, test.opened)
				}
			}
			if resp, body := h.ask("/v1/messages", messageRequest); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", resp.Status, body)
			}
		})
	}
}
