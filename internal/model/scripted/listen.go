package scripted

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is a handler listening on the loopback interface.
type Server struct {
	// URL is the server's address without a path: what ANTHROPIC_BASE_URL and the neutral model URL
	// take. OPENAI_BASE_URL takes URL + "/v1".
	URL string

	http   *http.Server
	served chan error // closed, after at most one error, when the server has stopped
}

// Listen serves a handler at a loopback address; port 0 finds a free one. Anything but loopback is
// refused, because anyone who reaches the port can read what the script makes an agent do.
func Listen(addr string, handler http.Handler) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("address %q is not on the loopback interface; use 127.0.0.1:PORT", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	s := &Server{
		URL:    "http://" + listener.Addr().String(),
		http:   &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second},
		served: make(chan error, 1),
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.served <- err
		}
	}()
	return s, nil
}

// Done is closed when the server has stopped; before that it may yield the error it stopped with.
func (s *Server) Done() <-chan error { return s.served }

// Close stops the server and every reply in flight, and waits for the listener to be gone.
func (s *Server) Close() error {
	err := s.http.Close()
	if stopped, ok := <-s.served; ok && err == nil {
		err = stopped
	}
	return err
}
