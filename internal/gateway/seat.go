package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/session"
)

// Member is a participant whose model calls go through the gateway.
type Member struct {
	Name string // the participant's; the lane of its calls
	Cell string // task, arm and run
	// FaultKey decides, with the number of a call, which faults the member meets: task and run, but
	// not the arm. Without it, the member meets none.
	FaultKey string
	// Upstreams are the endpoints for its calls, one entry for each protocol that it may speak.
	Upstreams []Upstream
	Calls     *calls.Writer // nil: not recorded
	Replay    *Replay       // nil: the upstream answers
	Account   *Account      // pays for the calls; nil: no budget
	// OnCall, if set, is called after each call, one at a time.
	OnCall func(calls.Call)
}

// TokenHeader carries an agent's token if the agent also sends its own login.
const TokenHeader = "X-Fit-Token"

// Seat is the place of a member at the gateway.
type Seat struct {
	// Token is the member's key, and the only one that it sees.
	Token string
	// URL is the member's base URL, without /v1.
	URL string
	// SocketPath is the socket on which the gateway listens as well; empty where it has no socket.
	SocketPath string

	gateway   *Gateway
	member    Member
	underWay  atomic.Int64        // bytes of requests
	faulted   atomic.Bool         // a call was made to fail on purpose
	upstreams map[string]upstream // by protocol

	mu       sync.Mutex
	left     bool
	servers  []*http.Server
	seq      int64
	asked    int               // calls that carry a turn
	turns    int               // of the prompt, those that are tried again not counted
	maxTurns int               // of the prompt; 0 does not bound them
	limit    error             // that the member has reached
	reached  chan struct{}     // closed when it has; nil before the first prompt
	failed   [sha256.Size]byte // the request that failed last
	repeats  int               // how often it was tried again
	returned bool              // it does not count as a turn
	troubled bool              // the service did not answer the last call that carries a turn
	// unanswered is how long calls that carry a turn have waited for nothing since the last answer.
	unanswered time.Duration
	// held is how long calls have been held back, holding how many are now, and holdsSince since
	// when one is. heldBack says that the last call that carries a turn never left the gateway.
	held       time.Duration
	holding    int
	holdsSince time.Time
	heldBack   bool
	answered   map[string]bool // the models that completed a turn
	lost       bool            // the account or the model that the last call that carries a turn needs is gone
	rejected   bool            // it was refused for what it asks
	// unfinished says that the service did not complete its last reply to a call with tools.
	unfinished bool
	// failures are calls that carry a turn in which the service failed, or which were repeated
	// although it had refused them or the member had left; refusals are others of these.
	failures, refusals int
	record             sync.Mutex // one call at a time is recorded
	running            int
	idle               chan struct{} // closed when no call is running any more
	wire               session.Wire
}

// tokenHash is the stored form of a token. The time to look one up reveals nothing about the
// existing tokens.
type tokenHash [sha256.Size]byte

func hashOf(token string) tokenHash { return sha256.Sum256([]byte(token)) }

// Join gives a member a seat with its own token.
func (g *Gateway) Join(m Member) (*Seat, error) {
	seat := &Seat{
		Token:      "fit-" + rand.Text(),
		URL:        g.url,
		SocketPath: g.socket,
		gateway:    g,
		member:     m,
		upstreams:  map[string]upstream{},
		answered:   map[string]bool{},
	}
	for _, to := range m.Upstreams {
		resolved, err := to.resolve()
		if err != nil {
			return nil, err
		}
		seat.upstreams[to.Protocol] = resolved
	}
	if len(seat.upstreams) == 0 && m.Replay == nil {
		return nil, fmt.Errorf("gateway: %s has no upstream", m.Name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errors.New("the gateway is closed")
	}
	g.seats[hashOf(seat.Token)] = seat
	return seat, nil
}

// Port returns the port of the gateway on the loopback interface.
func (s *Seat) Port() int { return s.gateway.port }

// Serve answers on another listener, on which only the token of this seat is valid, until the
// listener is closed or the member leaves.
func (s *Seat) Serve(listener net.Listener) error {
	server := s.gateway.newServer(s, func(shown *Seat) bool { return shown == s })
	s.mu.Lock()
	if s.left {
		s.mu.Unlock()
		_ = listener.Close()
		return http.ErrServerClosed
	}
	s.servers = append(s.servers, server)
	s.mu.Unlock()
	return server.Serve(listener)
}

// ServeCell answers on another listener, on which the tokens of all seats of this one's cell are
// valid, until the listener is closed: the agents of a cell may share a container and its ports.
func (s *Seat) ServeCell(listener net.Listener) error {
	server := s.gateway.newServer(s, func(shown *Seat) bool {
		return shown == s || s.member.Cell != "" && shown.member.Cell == s.member.Cell
	})
	err := server.Serve(listener)
	_ = server.Close() // ends the connections; the listener is closed
	return err
}

// Leave revokes the token and ends the listeners of the seat. It waits for calls that are about to
// end; others end by themselves.
func (s *Seat) Leave() error {
	s.gateway.mu.Lock()
	delete(s.gateway.seats, hashOf(s.Token))
	s.gateway.mu.Unlock()
	s.Settle()
	return s.close()
}

func (s *Seat) close() error {
	s.mu.Lock()
	servers := s.servers
	s.left, s.servers = true, nil
	s.mu.Unlock()
	var failed []error
	for _, server := range servers {
		// The caller may have closed the listener a moment ago.
		if err := server.Close(); !errors.Is(err, net.ErrClosed) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// seatOf finds the seat whose token a request shows.
func (g *Gateway) seatOf(r *http.Request) *Seat {
	given := hashOf(tokenIn(r))
	g.mu.Lock()
	seat := g.seats[given]
	g.mu.Unlock()
	if seat == nil {
		return nil
	}
	if held := hashOf(seat.Token); subtle.ConstantTimeCompare(held[:], given[:]) != 1 {
		return nil
	}
	return seat
}

// keyInQuery is the query parameter in which clients of Google's protocol may put a key.
const keyInQuery = "key"

// tokenIn returns the token of a request, wherever its protocol puts keys.
func tokenIn(r *http.Request) string {
	for _, name := range append([]string{TokenHeader}, keyHeaders[:2]...) {
		if token := r.Header.Get(name); token != "" {
			return token
		}
	}
	if token := r.URL.Query().Get(keyInQuery); token != "" {
		return token
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// begin and end count the calls in flight.
func (s *Seat) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running++; s.running == 1 {
		s.idle = make(chan struct{})
	}
}

func (s *Seat) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 {
		close(s.idle)
	}
}

// settleTime is how long Settle waits. The rest takes milliseconds on an idle machine; an agent
// that keeps calling in the background is rare.
const settleTime = 10 * time.Second

// Settle waits briefly for calls in flight: an agent that has ended has seen all of its
// replies, and only our notes about them are missing.
func (s *Seat) Settle() {
	s.mu.Lock()
	idle, running := s.idle, s.running
	s.mu.Unlock()
	if running == 0 {
		return
	}
	select {
	case <-idle:
	case <-time.After(settleTime):
	}
}

// Troubled reports whether the model provider failed the last call of the member that carries a
// turn: it refused the key, was too busy, broke, or did not answer. If an agent claims that and
// Troubled is false, the claim is wrong.
func (s *Seat) Troubled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.troubled
}

// Unfinished reports whether the model provider failed the last call of the member that carries a
// turn and offers tools: what the member made of the reply, if it had any, is not the model's
// answer.
func (s *Seat) Unfinished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unfinished
}

// hold begins the time in which a call is held back, by a rate limit or by a budget that others
// use. The function it returns ends it.
func (s *Seat) hold() (released func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding++; s.holding == 1 {
		s.holdsSince = time.Now()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.holding--; s.holding == 0 {
			s.held += time.Since(s.holdsSince)
		}
	}
}

// Held returns how long calls of the member were held back by the gateway, those that still are
// included. It is fit's own pause, and neither the agent's time nor the service's.
func (s *Seat) Held() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding > 0 {
		return s.held + time.Since(s.holdsSince)
	}
	return s.held
}

// gaveUp notes whether the member gave up on its last call while it was held back.
func (s *Seat) gaveUp(heldBack bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heldBack = heldBack
}

// HeldBack reports whether the last call of the member that carries a turn never left the gateway.
func (s *Seat) HeldBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heldBack
}

// Unanswered returns how long calls of the member that carry a turn have waited for the model's
// service in vain since it last answered one.
func (s *Seat) Unanswered() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unanswered
}

// Lost reports whether the last call of the member that carries a turn was refused because of its
// account, or because its model, which had completed a turn before, was not found. These are the
// service's words, which an agent may have put into its mouth.
func (s *Seat) Lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Rejected reports whether the last call of the member that carries a turn was refused for what it
// asks.
func (s *Seat) Rejected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected
}

// Failures returns how many calls of the member that carry a turn failed because of the service, or
// were refused by it or given up by the member and repeated, and how many others were. A model may
// have been asked in all of them, and whatever made them fail may have seen its answer.
func (s *Seat) Failures() (failed, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures, s.refusals
}

// Spoiled reports whether a call of the member was made to fail on purpose.
func (s *Seat) Spoiled() bool { return s.faulted.Load() }

// Wire returns the calls of the member as the gateway saw them.
func (s *Seat) Wire() *session.Wire { return &s.wire }
