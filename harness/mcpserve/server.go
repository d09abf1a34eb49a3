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
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
)

const (
	// maxRequest is more than a message may have, so that it is the dispatcher that says what is
	// wrong with one that is too long.
	maxRequest = 64 << 20
	// closeGrace is how long calls may take to end when the session is over.
	closeGrace      = 2 * time.Second
	defaultProgress = 10 * time.Second
)

// server is the one tool server of a session.
type server struct {
	cfg       Config
	name      string
	url       string
	web       *http.Server
	tokens    map[string]string               // by participant
	endpoints map[[sha256.Size]byte]*endpoint // by the hash of the token
	serving   sync.WaitGroup
	closing   sync.Once
	closeErr  error

	mu     sync.Mutex
	unused map[net.Conn]bool // connections that have not brought a request yet
}

// endpoint is the part of the server that one participant can see.
type endpoint struct {
	mcp     *mcp.Server
	handler http.Handler
	// callIDKey is where the agent that sits here puts the id of a call; it is known when the agent
	// is about to start.
	callIDKey atomic.Pointer[string]
}

func serve(listener net.Listener, d *harness.Dispatcher, tokens []string, cfg Config) (*server, error) {
	participants := d.Participants()
	if len(participants) > len(tokens) {
		return nil, fmt.Errorf("the session has %d participants and %d tokens", len(participants), len(tokens))
	}
	if cfg.Progress <= 0 {
		cfg.Progress = defaultProgress
	}
	s := &server{
		cfg:       cfg,
		name:      d.ServerName(),
		url:       "http://" + listener.Addr().String() + "/mcp",
		tokens:    map[string]string{},
		endpoints: map[[sha256.Size]byte]*endpoint{},
		unused:    map[net.Conn]bool{},
	}
	for i, name := range participants {
		s.tokens[name] = tokens[i]
		s.endpoints[sha256.Sum256([]byte(tokens[i]))] = newEndpoint(d, name, cfg)
	}
	s.web = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ConnState: s.noteConn}
	s.serving.Go(func() { _ = s.web.Serve(listener) }) // it ends by Close, and says so
	return s, nil
}

// newEndpoint offers a participant its tools. Every participant has a handler of its own, so that
// nobody can take over the connection of another.
func newEndpoint(d *harness.Dispatcher, participant string, cfg Config) *endpoint {
	own := &endpoint{mcp: mcp.NewServer(&mcp.Implementation{Name: d.ServerName(), Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})}
	for _, tool := range d.Tools(participant) {
		own.mcp.AddTool(
			&mcp.Tool{
				Name:        tool.Name,
				Description: tool.Description,
				InputSchema: tool.InputSchema,
				Annotations: &mcp.ToolAnnotations{ReadOnlyHint: tool.ReadOnlyHint},
			},
			own.handle(d, participant, tool, cfg.Progress),
		)
	}
	own.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return own.mcp },
		&mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxRequest})
	return own
}

// ServeHTTP lets in whoever has a token.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if own := s.endpoints[sha256.Sum256([]byte(token))]; ok && own != nil {
		own.handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "this token is not that of a participant", http.StatusUnauthorized)
}

// Servers implements harness.Connector.
func (s *server) Servers(participant string, played agent.Info) ([]agent.MCPServer, error) {
	token, ok := s.tokens[participant]
	if !ok {
		return nil, fmt.Errorf("no participant is called %q", participant)
	}
	s.endpoints[sha256.Sum256([]byte(token))].callIDKey.Store(&played.CallIDKey)
	if len(s.cfg.Stdio) > 0 {
		return []agent.MCPServer{{
			Name:    s.name,
			Command: s.cfg.Stdio[0],
			Args:    s.cfg.Stdio[1:],
			Env:     map[string]string{EnvURL: s.url, EnvToken: token},
		}}, nil
	}
	return []agent.MCPServer{{Name: s.name, URL: s.url,
		Headers: map[string]string{"Authorization": "Bearer " + token}}}, nil
}

// Close implements harness.Connector: it ends every connection and waits for what is still being
// served.
func (s *server) Close() error {
	s.closing.Do(func() {
		for _, own := range s.endpoints {
			for session := range own.mcp.Sessions() {
				_ = session.Close() // its agent has ended or is about to
			}
		}
		s.closeUnused()
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		if err := s.web.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			s.closeErr = s.web.Close()
		} else if err != nil {
			s.closeErr = fmt.Errorf("close the tool server: %w", err)
		}
		s.serving.Wait()
	})
	return s.closeErr
}

// noteConn knows the connections that were never used: clients open some in reserve, and a server
// that shuts down would wait for their first request.
func (s *server) noteConn(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateNew {
		s.unused[conn] = true
	} else {
		delete(s.unused, conn)
	}
}

func (s *server) closeUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.unused {
		_ = conn.Close() // nobody was using it
	}
}
