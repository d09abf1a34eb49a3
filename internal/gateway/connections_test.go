package gateway_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/gateway"
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
			// Those that are too many end, the oldest first; on a busy machine that is not quite
			// the order in which they were opened.
			ended := make(chan bool, len(conns))
			for _, conn := range conns {
				_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
				go func() {
					_, err := io.Copy(io.Discard, conn)
					ended <- !errors.Is(err, os.ErrDeadlineExceeded)
				}()
			}
			for i := range test.opened - test.left {
				if !<-ended {
					t.Fatalf("after %d connections of %d, those that are left are still open", i, test.opened)
				}
			}
			if resp, body := h.ask("/v1/messages", messageRequest); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", resp.Status, body)
			}
		})
	}
}

// TestARequestGetsTheMemoryThatItSends: hundreds of requests that announce sixty megabytes and send
// a byte take next to nothing.
func TestARequestGetsTheMemoryThatItSends(t *testing.T) {
	h := open(t, gateway.Config{}, func(http.ResponseWriter, *http.Request) {})
	hostile, err := h.Join(gateway.Member{
		Name:      "hostile",
		Upstreams: []gateway.Upstream{{Protocol: gateway.Anthropic, URL: "http://127.0.0.1:9/v1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const opened = 300
	for range opened {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.seat.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: "+hostile.Token+
			"\r\nExpect: 100-continue\r\nContent-Length: 60000000\r\n\r\n{")
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if _, err := conn.Read(make([]byte, 64)); err != nil { // 100 Continue: the body is being read
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > opened<<20 {
		t.Errorf("%d MiB for %d requests of a byte", grown>>20, opened)
	}
}
