package mcpserve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// webServer serves all participants at one address.
type webServer struct {
	server *server
	web    *http.Server
	url    string
	routes map[[sha256.Size]byte]route // by the hash of the token

	mu     sync.Mutex
	unused map[net.Conn]bool // connections that have not brought a request yet
}

// route leads from one participant's token to its tools.
type route struct {
	endpoint *endpoint
	handler  http.Handler
}

// connection is the state of one TCP connection.
type connection struct {
	conn net.Conn

	mu      sync.Mutex
	serves  *endpoint // who was admitted
	refused bool
}

type connectionKey struct{}

func (s *server) listenHTTP() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w := &webServer{
		server: s,
		url:    "http://" + listener.Addr().String() + "/mcp",
		routes: map[[sha256.Size]byte]route{},
		unused: map[net.Conn]bool{},
	}
	for _, own := range s.endpoints {
		w.routes[sha256.Sum256([]byte(own.token))] = route{
			own,
			mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return own.mcp },
				&mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxRequest}),
		}
	}
	w.web = &http.Server{
		Handler:           w,
		ReadHeaderTimeout: 10 * time.Second,
		ConnState:         w.noteConn,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, &connection{conn: conn})
		},
	}
	s.web = w
	s.serving.Go(func() { _ = w.web.Serve(listener) }) // it always returns an error after close
	return nil
}

// ServeHTTP serves requests that carry a token and come from a process that the token's agent
// started.
func (w *webServer) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	d, known := w.routes[sha256.Sum256([]byte(token))]
	if !ok || !known {
		out.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(out, "this is not the token of a participant", http.StatusUnauthorized)
		return
	}
	if from, _ := r.Context().Value(connectionKey{}).(*connection); !w.admit(from, d.endpoint) {
		http.Error(out, "this process does not belong to the participant", http.StatusForbidden)
		return
	}
	d.handler.ServeHTTP(out, r)
}

// admit checks the peer of a connection once. A connection serves one participant.
func (w *webServer) admit(from *connection, own *endpoint) bool {
	from.mu.Lock()
	defer from.mu.Unlock()
	if from.serves == own || from.refused {
		return from.serves == own && !from.refused
	}
	if !w.server.admit(own, func() (peer, error) { return loopbackPeer(from.conn) }) {
		from.refused = true
		return false
	}
	from.serves = own
	return true
}

func (w *webServer) close() error {
	w.closeUnused()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	err := w.web.Shutdown(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return w.web.Close()
	case err != nil:
		return fmt.Errorf("close the tool server: %w", err)
	}
	return nil
}

// noteConn keeps track of connections that were never used: clients open some in reserve, and a
// server that shuts down would wait for their first request.
func (w *webServer) noteConn(conn net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == http.StateNew {
		w.unused[conn] = true
	} else {
		delete(w.unused, conn)
	}
}

func (w *webServer) closeUnused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.unused {
		_ = conn.Close() // nobody was using it
	}
}
