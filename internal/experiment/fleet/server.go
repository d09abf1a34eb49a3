package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/jsonlines"
)

// ServerConfig says how a hub is started.
type ServerConfig struct {
	// Listen is host:port. Other addresses than loopback use TLS.
	Listen string
	// Dir keeps the keys, their URLs, the certificate and the streams, so that a restarted
	// hub is the same hub.
	Dir string
	// Public is the address that the join URL names; empty is the one that is listened on.
	Public string
	// Note reports what happens; nil reports nothing.
	Note func(text string)
}

// Server is an embedded hub.
type Server struct {
	cfg      ServerConfig
	options  server.Options
	join     joinURL
	keys     atomic.Pointer[hubKeys]
	keysTime time.Time // of the file that they are in
	lock     *os.File
	full     chan string // receives why the hub cannot write
	ended    chan struct{}
	restarts sync.WaitGroup

	nats *server.Server // of the goroutine that mends, until that has ended
}

// maxMessage bounds a message; files travel in chunks.
const maxMessage = 1 << 20

// ErrListen is returned for an address that cannot be listened on.
var ErrListen = errors.New("not a valid address")

// StartServer starts a hub.
func StartServer(cfg ServerConfig) (_ *Server, err error) {
	host, port, err := splitAddress(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", cfg.Listen, err)
	}
	if cfg.Public != "" {
		if _, _, err := splitAddress(cfg.Public); err != nil {
			return nil, fmt.Errorf("public address %q: %w", cfg.Public, err)
		}
	}
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	s := &Server{cfg: cfg, full: make(chan string, 1), ended: make(chan struct{})}
	if err := s.lockDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.lock.Close()
		}
	}()
	keys, err := hubSecrets(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s.keys.Store(keys)
	s.keysTime = modified(filepath.Join(cfg.Dir, keysFile))
	if port == 0 {
		port = server.RANDOM_PORT
	} else if free, err := net.Listen("tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("start the hub: %w", err)
	} else if err := free.Close(); err != nil {
		return nil, err
	}
	s.options = server.Options{
		ServerName: "fit-fleet",
		Host:       host,
		Port:       port,
		JetStream:  true,
		StoreDir:   filepath.Join(cfg.Dir, "jetstream"),
		MaxPayload: maxMessage,
		NoSigs:     true,
		MaxConn:    64 << 10,
	}
	if !isLoopback(host) {
		if s.options.TLSConfig, s.join.Fingerprint, err = keys.tls(); err != nil {
			return nil, err
		}
		s.options.TLS, s.options.TLSTimeout = true, 5
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	s.options.Port = s.nats.Addr().(*net.TCPAddr).Port
	s.join.Address = net.JoinHostPort(reachable(s.nats.Addr().(*net.TCPAddr).IP), strconv.Itoa(s.options.Port))
	join := s.join
	join.Address = cmp.Or(s.cfg.Public, join.Address)
	if err := keys.writeURLs(cfg.Dir, join); err != nil {
		s.nats.Shutdown()
		return nil, err
	}
	s.restarts.Go(s.restartWhenWritable)
	return s, nil
}

// splitAddress reads host:port.
func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%w: must be host:port", ErrListen)
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%w: the port must be from 0 to 65535", ErrListen)
	}
	return host, port, nil
}

// lockDir locks the directory: two hubs would write the same streams.
func (s *Server) lockDir() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("make the hub's directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.cfg.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock the hub's directory: %w", err)
	}
	if err := jsonlines.Lock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, jsonlines.ErrLocked) {
			return fmt.Errorf("another hub uses %s; choose another --dir", s.cfg.Dir)
		}
		return fmt.Errorf("lock the hub's directory: %w", err)
	}
	s.lock = file
	return nil
}

// start starts the engine.
func (s *Server) start() error {
	options, err := s.withKeys(s.keys.Load())
	if err != nil {
		return err
	}
	hub, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("start the hub: %w", err)
	}
	hub.SetLogger(writeErrors(s.full), false, false)
	go hub.Start()
	if !hub.ReadyForConnections(15 * time.Second) {
		hub.Shutdown()
		return fmt.Errorf("start the hub: %s or %s cannot be used", s.cfg.Listen, s.cfg.Dir)
	}
	s.nats = hub
	return nil
}

// withKeys returns the options of the engine with the accounts of some keys. It fills in what is
// not set.
func (s *Server) withKeys(keys *hubKeys) (*server.Options, error) {
	options := s.options
	accounts, err := keys.write(s.cfg.Dir, &conf)
	if err == nil {
		err = options.ProcessConfigString(accounts)
	}
	return &options, err
}

// reachable returns an address at which others reach this machine, if the hub listens on all
// addresses.
func reachable(ip net.IP) string {
	if !ip.IsUnspecified() {
		return ip.String()
	}
	addresses, _ := net.InterfaceAddrs() // without them it is this machine only
	best := "127.0.0.1"
	for _, address := range addresses {
		if own, ok := address.(*net.IPNet); ok && own.IP.IsGlobalUnicast() {
			if best = own.IP.String(); own.IP.To4() != nil {
				return best
			}
		}
	}
	return best
}

// URL returns the URL with which a member of a role joins. It holds a token.
func (s *Server) URL(role string) string {
	return s.url(role, cmp.Or(s.cfg.Public, s.join.Address))
}

// Dir returns the directory that has the URLs.
func (s *Server) Dir() string { return s.cfg.Dir }

// OwnURL returns the URL for this machine, whatever address others use.
func (s *Server) OwnURL(role string) string {
	address := s.join.Address
	if ip := net.ParseIP(s.options.Host); s.options.Host == "" || ip != nil && ip.IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.options.Port))
	}
	return s.url(role, address)
}

func (s *Server) url(role, address string) string {
	join := s.join
	join.Address, join.Role = address, role
	for _, m := range s.keys.Load().Members {
		if m.Role == role {
			join.Token = m.Seed
			break
		}
	}
	return join.String()
}

// lookAtKeys applies keys that were added or revoked.
func (s *Server) lookAtKeys() {
	now := modified(filepath.Join(s.cfg.Dir, keysFile))
	if now.Equal(s.keysTime) {
		return
	}
	keys, err := hubSecrets(s.cfg.Dir)
	// the server subscribes a new account to its imports only when it is there for the second time
	for range 2 {
		var options *server.Options
		if err == nil {
			options, err = s.withKeys(keys)
		}
		if err == nil {
			err = s.nats.ReloadOptions(options)
		}
	}
	join := s.join
	join.Address = cmp.Or(s.cfg.Public, join.Address)
	if err == nil {
		err = keys.writeURLs(s.cfg.Dir, join)
	}
	if err != nil {
		s.cfg.Note(fmt.Sprintf("the keys of the hub did not change: %v", err))
	} else {
		s.forget(keys)
	}
	s.keysTime = now
}

// forget takes the workers of revoked keys off the list, where they would stay for a while.
func (s *Server) forget(keys *hubKeys) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, m := range s.keys.Swap(keys).Members {
		if slices.Contains(keys.Members, m) {
			continue
		}
		key, err := m.Key()
		if err != nil {
			continue
		}
		hub, err := Dial(ctx, Dialing{URL: s.OwnURL(RoleCoordinator), Role: RoleCoordinator})
		if err != nil {
			return // it has no coordinator, and they go by themselves
		}
		if stream, err := hub.stream(ctx, "KV_"+workersBucket); err == nil {
			_ = stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+workersBucket+"."+key+".*")) // as above
		}
		hub.Close()
	}
}

func modified(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Close ends the hub; its streams stay on disk.
func (s *Server) Close() {
	close(s.ended)
	s.restarts.Wait()
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	_ = s.lock.Close()
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
