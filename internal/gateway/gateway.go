package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// Config says how a gateway treats the calls of all its members. The zero value passes them on.
type Config struct {
	Policy
	// Addr is the loopback address to listen on; empty is 127.0.0.1 with a free port.
	Addr string
	// Dir is a private directory of the caller for the socket; if it is empty, the gateway makes
	// one.
	Dir string
	// Redactor takes secrets out of the errors that are kept; nil keeps them as they are.
	Redactor *redact.Redactor
	// Prices says what calls cost; nil is unknown.
	Prices session.Prices
	Rate   *RateControl // nil: no limit
	// IdleTimeout is the longest silence of an upstream, before its reply and within it; 0 is
	// defaultIdleTimeout.
	IdleTimeout time.Duration
	Now         func() time.Time // nil is the system's clock
}

const (
	// defaultIdleTimeout is generous because a reply that is not streamed is silent until it is
	// complete.
	defaultIdleTimeout = 10 * time.Minute
	// maxHeader bounds the header of a request. Agents send a few kilobytes.
	maxHeader = 64 << 10
	// readHeaderTimeout bounds how long a client may take to send it.
	readHeaderTimeout = 30 * time.Second
)

// Gateway is a running gateway.
type Gateway struct {
	cfg       Config
	url       string
	port      int
	dir       *scratch.Dir // of the socket; nil: the caller's
	socket    string
	transport *http.Transport
	servers   []*http.Server
	// ctx ends when the gateway closes, and with it every call.
	ctx     context.Context
	cancel  context.CancelFunc
	serving sync.WaitGroup // listeners and calls
	open    connections

	mu     sync.Mutex
	closed bool
	seats  map[tokenHash]*Seat
}

// Start opens a gateway. The caller closes it.
func Start(cfg Config) (*Gateway, error) {
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = defaultIdleTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	tcp, err := listenLoopback(cfg.Addr)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		cfg:       cfg,
		url:       "http://" + tcp.Addr().String(),
		port:      tcp.Addr().(*net.TCPAddr).Port,
		transport: newTransport(),
		seats:     map[tokenHash]*Seat{},
	}
	listeners := []net.Listener{tcp}
	// the address works without the socket, whose path may be too long for the system
	if unix, err := g.listenUnix(); err == nil {
		listeners = append(listeners, unix)
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	for _, listener := range listeners {
		server := g.newServer(nil, nil)
		g.servers = append(g.servers, server)
		g.serving.Go(func() { _ = server.Serve(listener) }) // it always ends with an error
	}
	return g, nil
}

// listenUnix opens the socket in the caller's directory, or in a new one.
func (g *Gateway) listenUnix() (net.Listener, error) {
	parent := g.cfg.Dir
	if parent == "" {
		dir, err := scratch.Make("", "fit-gateway-")
		if err != nil {
			return nil, err
		}
		g.dir, parent = dir, dir.Path
	}
	path := filepath.Join(parent, "gateway.sock")
	listener, err := net.Listen("unix", path)
	if err == nil {
		g.socket = path
	}
	return listener, err
}

// scratch returns a private directory for what calls keep on disk.
func (g *Gateway) scratch() string {
	if g.dir != nil {
		return g.dir.Path
	}
	return g.cfg.Dir
}

func listenLoopback(addr string) (net.Listener, error) {
	addr = cmp.Or(addr, "127.0.0.1:0")
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("address %q is not on the loopback interface; use 127.0.0.1:PORT", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open the gateway: %w", err)
	}
	return listener, nil
}

// newTransport makes the transport for calls to upstreams. It follows no redirect and asks for no
// compression, which would hold events back.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// newServer makes the server of one listener, whose connections belong to a seat or to nobody yet.
// Only the tokens of seats that are admitted are valid; nil admits all.
func (g *Gateway) newServer(owner *Seat, admits func(*Seat) bool) *http.Server {
	server := &http.Server{
		Handler:           &door{gateway: g, admits: admits},
		ReadHeaderTimeout: readHeaderTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // clients get an answer that says what they did wrong
		BaseContext:       func(net.Listener) context.Context { return g.ctx },
	}
	g.open.watch(server, owner)
	return server
}

// URL returns the gateway's address on the loopback interface.
func (g *Gateway) URL() string { return g.url }

// Close ends the gateway and every call in flight, and waits for them. All tokens are void.
func (g *Gateway) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	seats := g.seats
	g.seats = map[tokenHash]*Seat{}
	g.mu.Unlock()
	g.cancel()
	var failed []error
	for _, server := range g.servers {
		failed = append(failed, server.Close())
	}
	for _, seat := range seats {
		failed = append(failed, seat.close())
	}
	g.serving.Wait()
	g.transport.CloseIdleConnections()
	if g.dir != nil {
		failed = append(failed, g.dir.Remove())
	}
	return errors.Join(failed...)
}

// begin counts a call, unless the gateway is closed.
func (g *Gateway) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.serving.Add(1)
	}
	return !g.closed
}
