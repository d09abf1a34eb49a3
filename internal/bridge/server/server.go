package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Config says how a bridge works.
type Config struct {
	// Dir holds the threads. One server at a time has it.
	Dir string
	// Address is where runs reach the server, without a slash at the end.
	Address string
	// Dispatch holds one run, and returns when its end has been reported, or when it will be
	// reported by somebody else. An error is the end of the run. A context that has ended leaves
	// the run as it is, to be continued.
	Dispatch func(ctx context.Context, job Job) error
	// Spent, if set, is what a run has cost that was interrupted, or 0 where nobody knows.
	Spent func(ctx context.Context, job Job) float64
	// MaxRuns is how many runs are live concurrently; 0 is 4.
	MaxRuns int
	// RunLimit is how long a run may take until its end is reported; 0 is 5 hours. A recess
	// in which people suspended it does not count, nor does time in which no server is up.
	RunLimit time.Duration
	// Channels are where posts appear outside.
	Channels []Channel
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
	// Note, if set, is called with what the operator should know.
	Note func(text string)
}

const (
	defaultRuns     = 4
	defaultRunLimit = 5 * time.Hour
)

// Server is a bridge.
type Server struct {
	cfg    Config
	store  *store
	lock   *os.File
	mux    *http.ServeMux
	limits limits
	people sync.Map        // who have asked, by the hashes of their tokens
	kick   chan struct{}   // has room for one: something may be due
	mail   []chan struct{} // of every channel, the same: something is in its outbox

	mu       sync.Mutex
	waiting  map[string]chan struct{} // by thread; closed at its next change
	watching map[int]func(threads map[string]bool)
	watchers int // how many there have been
	stop     map[string]context.CancelFunc
	work     sync.WaitGroup
	closing  chan struct{}
}

// ErrInUse is a directory that another server has.
var ErrInUse = errors.New("another fit bridge serves it")

// Open opens a bridge. Close ends it.
func Open(cfg Config) (*Server, error) {
	if cfg.MaxRuns == 0 {
		cfg.MaxRuns = defaultRuns
	}
	if cfg.RunLimit == 0 {
		cfg.RunLimit = defaultRunLimit
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(cfg.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if !locked(lock) {
		_ = lock.Close()
		return nil, fmt.Errorf("%s: %w", cfg.Dir, ErrInUse)
	}
	s := &Server{
		cfg:      cfg,
		lock:     lock,
		kick:     make(chan struct{}, 1),
		waiting:  map[string]chan struct{}{},
		watching: map[int]func(map[string]bool){},
		stop:     map[string]context.CancelFunc{},
		closing:  make(chan struct{}),
	}
	for range cfg.Channels {
		s.mail = append(s.mail, make(chan struct{}, 1))
	}
	if s.store, err = openStore(cfg.Dir, cfg.Channels, cfg.Now, s.announce); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%s: %w", cfg.Dir, err)
	}
	if err := s.store.change(func(c *change) error { return cmp.Or(c.tryRefused(), c.restartClocks()) }); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.mux = s.routes()
	return s, nil
}

// lockLimit is how long the lock of a server that was killed may last: a process that it was about
// to start has it for a moment.
const lockLimit = 5 * time.Second

func locked(file *os.File) bool {
	for deadline := time.Now().Add(lockLimit); ; time.Sleep(20 * time.Millisecond) {
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// Close ends the server. Runs that are live stay so, for the next one.
func (s *Server) Close() error {
	close(s.closing)
	s.work.Wait()
	return errors.Join(s.store.close(), s.lock.Close())
}

var tenantName = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,63}$`)

// IsTenant reports whether a text can name a tenant.
func IsTenant(name string) bool { return tenantName.MatchString(name) }

// Invite makes a token with which a person posts in a tenant's threads.
func Invite(dir, tenant, person string) (string, error) {
	if !IsTenant(tenant) {
		return "", fmt.Errorf("the tenant %q must be lower-case letters, digits and dashes", tenant)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	st, err := openStore(dir, nil, time.Now, func(news) {})
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	var token string
	err = st.change(func(c *change) (err error) {
		token, err = c.grant(tenant, "", person)
		return err
	})
	return token, errors.Join(err, st.close())
}

// announce wakes everybody who waits for a change of the threads, what starts runs, and what sends
// posts.
func (s *Server) announce(of news) {
	s.mu.Lock()
	for thread := range of.touched {
		if wait := s.waiting[thread]; wait != nil {
			close(wait)
			delete(s.waiting, thread)
		}
	}
	for _, tell := range s.watching {
		tell(of.touched)
	}
	s.mu.Unlock()
	if of.due {
		wake(s.kick)
	}
	if of.mailed {
		for _, kick := range s.mail {
			wake(kick)
		}
	}
}

func wake(kick chan struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// nextChange returns a channel that is closed at the next change of a thread. Who reads afterwards
// misses nothing.
func (s *Server) nextChange(thread string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[thread] == nil {
		s.waiting[thread] = make(chan struct{})
	}
	return s.waiting[thread]
}

func (s *Server) note(format string, args ...any) {
	if s.cfg.Note != nil {
		s.cfg.Note(fmt.Sprintf(format, args...))
	}
}
