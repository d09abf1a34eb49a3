package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcprelay"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
)

const (
	// maxRequest is more than a message may have, so that the dispatcher reports a message that is
	// too long.
	maxRequest = 64 << 20
	// closeGrace is how long calls may take to end when the session is over.
	closeGrace      = 2 * time.Second
	defaultProgress = 10 * time.Second
	// maxSocketDir leaves room for the rest of a socket's path, which has at most 107 bytes:
	// /fit-mcp-, a random number of ten digits, and the number of a participant.
	maxSocketDir = 80
)

// server is the one tool server of a session.
type server struct {
	dispatcher *harness.Dispatcher
	endpoints  map[string]*endpoint // by participant
	dir        *scratch.Dir         // of the sockets
	relay      string               // the program that agents start, in the same directory
	web        *webServer           // with Config.HTTP
	serving    sync.WaitGroup
	closing    sync.Once
	closeErr   error

	mu     sync.Mutex
	conns  map[net.Conn]bool // to sockets
	closed bool
}

// endpoint is the part of the server that one participant can reach.
type endpoint struct {
	participant string
	mcp         *mcp.Server
	processes   processTree // of the participant's agent
	token       string
	listener    net.Listener // of its socket
	socket      string
	// callIDKey is the key under which the agent sends the id of a call; it is known when the agent
	// is about to start.
	callIDKey atomic.Pointer[string]
}

// newEndpoint offers a participant its tools. Every participant has its own server, so that nobody
// can take over the connection of another.
func newEndpoint(d *harness.Dispatcher, participant, token string, cfg Config) *endpoint {
	own := &endpoint{participant: participant, token: token}
	own.mcp = mcp.NewServer(&mcp.Implementation{Name: d.ServerName(), Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
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
	return own
}

// listenSockets opens a socket for every participant. Everybody may connect, because an agent in a
// sandbox may be another user there; the peer decides who is served.
func (s *server) listenSockets() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program that agents can start: %w", err)
	}
	parent := os.TempDir()
	if len(parent) > maxSocketDir {
		parent = "/tmp"
	}
	if s.dir, err = scratch.Make(parent, "fit-mcp-"); err != nil {
		return err
	}
	if err := os.Chmod(s.dir.Path, 0o711); err != nil {
		return err
	}
	s.relay = filepath.Join(s.dir.Path, mcprelay.Name)
	if err := os.Symlink(program, s.relay); err != nil {
		return err
	}
	for i, name := range s.dispatcher.Participants() {
		own := s.endpoints[name]
		own.socket = filepath.Join(s.dir.Path, strconv.Itoa(i))
		if own.listener, err = net.Listen("unix", own.socket); err != nil {
			return err
		}
		if err := os.Chmod(own.socket, 0o777); err != nil {
			return err
		}
		s.serving.Go(func() { s.accept(own) })
	}
	return nil
}

// accept serves the connections to one participant's socket until it is closed.
func (s *server) accept(own *endpoint) {
	for {
		conn, err := own.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() {
			defer s.drop(conn)
			if s.keep(conn) && s.admit(own, func() (peer, error) { return socketPeer(conn) }) {
				s.serve(own, conn)
			}
		})
	}
}

// keep notes a connection, so that Close can end it; it reports false when it is too late.
func (s *server) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[conn] = true
	return !s.closed
}

func (s *server) drop(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = conn.Close() // its session has ended
	delete(s.conns, conn)
}

func (s *server) serve(own *endpoint, conn net.Conn) {
	session, err := own.mcp.Connect(context.Background(),
		&mcp.IOTransport{Reader: conn, Writer: conn, MaxLineLength: maxRequest}, nil)
	if err == nil {
		_ = session.Wait() // however it ended, the agent shows it
	}
}

// admit reports whether the peer of a connection may call in the name of a participant. A refusal
// is in the trace when it returns.
func (s *server) admit(own *endpoint, find func() (peer, error)) bool {
	from, err := find()
	if err != nil {
		s.dispatcher.Refused(own.participant, fmt.Sprintf(
			"a process that cannot be recognized (%v) tried to call tools as %s", err, own.participant))
		return false
	}
	if err := own.processes.admit(from); err != nil {
		s.dispatcher.Refused(own.participant, fmt.Sprintf("%s tried to call tools as %s, but %s%v",
			from, own.participant, own.participant, err))
		return false
	}
	return true
}

// Servers implements harness.Connector.
func (s *server) Servers(participant string, played agent.Info) ([]agent.MCPServer, error) {
	own := s.endpoints[participant]
	if own == nil {
		return nil, fmt.Errorf("no participant is called %q", participant)
	}
	own.callIDKey.Store(&played.CallIDKey)
	description := agent.MCPServer{Name: s.dispatcher.ServerName()}
	if s.web != nil {
		description.URL = s.web.url
		description.Headers = map[string]string{"Authorization": "Bearer " + own.token}
	} else {
		description.Socket = own.socket
		description.Command = s.relay
		description.Env = map[string]string{mcprelay.SocketVariable: own.socket}
	}
	return []agent.MCPServer{description}, nil
}

// Spawner implements harness.Connector.
func (s *server) Spawner(participant string, inner sandbox.ProcessSpawner) sandbox.ProcessSpawner {
	own := s.endpoints[participant]
	if own == nil || inner == nil {
		return inner
	}
	return treeSpawner{inner, &own.processes}
}

// Close implements harness.Connector: it ends every connection and waits for what is still being
// served.
func (s *server) Close() error {
	s.closing.Do(func() {
		for _, own := range s.endpoints {
			if own.listener != nil {
				_ = own.listener.Close() // no new connections
			}
			for session := range own.mcp.Sessions() {
				_ = session.Close() // its agent has ended or is about to
			}
		}
		s.mu.Lock()
		s.closed = true
		for conn := range s.conns {
			_ = conn.Close() // the process that still has it open is not our agent any more
		}
		s.mu.Unlock()
		if s.web != nil {
			s.closeErr = s.web.close()
		}
		s.serving.Wait()
		if s.dir != nil {
			s.closeErr = errors.Join(s.closeErr, s.dir.Remove())
		}
	})
	return s.closeErr
}
