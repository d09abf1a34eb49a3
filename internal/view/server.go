package view

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

//go:embed all:web/dist
var dist embed.FS

// Config says what is shown.
type Config struct {
	// Paths are run directories, directories of them, and traces.
	Paths []Path
	// Dialects decode traces, and Prices computes the costs that agents do not report.
	Dialects session.Dialects
	Prices   session.Prices
	// Redactor takes secrets out of traces that were not redacted when they were written.
	Redactor query.Redactor
	// Compared, if set, are groups of several run directories that are shown as one experiment.
	Compared []*report.Group
	// Allow are the reasons to withhold claims that the user accepts.
	Allow []string
	// Key is the user's key that signs ledgers, for checking signatures; nil is none.
	Key *ledger.SigningKey
	// NewKey makes that key where a note is to be signed and there is none; nil makes none.
	NewKey func() *ledger.SigningKey
	// Author is the name under which the user writes notes.
	Author string
}

// Path is a file or directory that the user gave.
type Path struct {
	Shown string // as the user wrote it
	Real  string // as it is opened
}

// Server answers questions about run directories and traces.
type Server struct {
	cfg      Config
	roots    []root
	token    string
	session  string // the value of the cookie
	assets   map[string]asset
	cache    cache
	unpack   unpacked
	indexing indexing
	pulses   pulses
	contests contests
	busy     chan struct{} // a place for each question to a trace in flight
	streams  streams
	ctx      context.Context // ends with the server, so that streams and work end too
	end      context.CancelFunc
	compared *snapshot // of the groups that are compared; nil if none are
	threads  *threads  // whose pages are served; nil if those of experiments are
	work     sync.WaitGroup
	writing  sync.Mutex                        // into a test of a skill
	made     atomic.Pointer[ledger.SigningKey] // the user's key, if it was made here
}

// New checks the paths and returns a server for them.
func New(cfg Config) (*Server, error) {
	roots, err := openRoots(cfg.Paths)
	if err != nil {
		return nil, err
	}
	assets, err := loadAssets(dist)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:     cfg,
		roots:   roots,
		token:   secret(),
		session: secret(),
		assets:  assets,
		busy:    make(chan struct{}, 2*runtime.GOMAXPROCS(0)),
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	if len(cfg.Compared) > 0 {
		s.compared = compare(cfg.Compared, cfg.Allow)
	}
	return s, nil
}

func secret() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw) // it never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// URL returns the address to open, which carries the token. A server on all interfaces is reached
// at the loopback interface.
func (s *Server) URL(address net.Addr) string {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	}
	return fmt.Sprintf("http://%s/?token=%s", address, s.token)
}

// shutdownLimit is how long answers in flight have when the server ends.
const shutdownLimit = 500 * time.Millisecond

// writeTimeout is how long a question may take, with the time in which its answer is read.
const writeTimeout = 5 * time.Minute

// httpServer limits the time and memory that a client may use.
func (s *Server) httpServer(addr net.Addr) *http.Server {
	return &http.Server{
		Handler:           s.Handler(addr),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
}

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := s.httpServer(listener.Addr())
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.end()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer cancel()
		if server.Shutdown(limit) != nil {
			_ = server.Close() // clients that are still connected have had their time
		}
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, s.Close())
}

// Close ends what the server does in the background and removes what it has unpacked.
func (s *Server) Close() error {
	s.end()
	s.work.Wait()
	return s.unpack.close()
}

// Handler answers requests to the server at an address.
func (s *Server) Handler(address net.Addr) http.Handler { return s.guard(address, s.mux()) }

// mux finds the answer to a request.
func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	for name := range s.assets {
		mux.HandleFunc("GET /"+name, s.asset(name))
	}
	endpoints := s.endpoints()
	if s.threads != nil {
		endpoints = s.threadEndpoints(endpoints)
	}
	for pattern, answer := range endpoints {
		mux.HandleFunc(pattern, s.json(answer))
	}
	mux.HandleFunc("GET /api/events", s.events)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, notFound("there is no endpoint "+r.Method+" "+r.URL.Path, ""))
	})
	return mux
}

// loadAssets reads the front end.
func loadAssets(from fs.FS) (map[string]asset, error) {
	assets := map[string]asset{}
	for name, kind := range map[string]string{
		"index.html":  "text/html; charset=utf-8",
		"app.js":      "text/javascript; charset=utf-8",
		"app.css":     "text/css; charset=utf-8",
		"follow.js":   "text/javascript; charset=utf-8",
		"favicon.svg": "image/svg+xml",
	} {
		content, err := fs.ReadFile(from, "web/dist/"+name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == "favicon.svg":
			continue
		case err != nil:
			return nil, fmt.Errorf("the front end is not built: %w", err)
		}
		assets[name] = asset{content: content, kind: kind, tag: tagOf(content)}
	}
	return assets, nil
}
