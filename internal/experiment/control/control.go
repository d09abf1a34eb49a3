// Package control lets other processes query the status of a running experiment, and steer it.
//
//  1. The process that runs the experiment calls Serve: it listens on a Unix socket in the run
//     directory that only its user can open.
//  2. Ask sends a Command and returns the Answer. ErrNotRunning says that nobody listens.
//
// A connection carries one JSON line each way.
package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// SocketFile is the socket in a run directory.
const SocketFile = "control.sock"

// The actions of a Command.
const (
	Ping        = "status" // changes nothing
	Pause       = "pause"
	Resume      = "resume"
	Cancel      = "cancel"
	Requeue     = "requeue"
	Concurrency = "concurrency"
	BudgetUSD   = "budget"
)

// The states of an experiment.
const (
	Running  = "running"
	Paused   = "paused"
	Stopping = "stopping" // no further cell is started; those in flight end
)

// ErrNotRunning is returned where no process works in a run directory.
var ErrNotRunning = errors.New("no process runs this experiment")

// Command is a command to an experiment.
type Command struct {
	Action string `json:"action"`
	// Task, Arm and Run name the cell of Cancel and Requeue.
	Task string `json:"task,omitempty"`
	Arm  string `json:"arm,omitempty"`
	Run  int    `json:"run,omitempty"`
	// N is how many cells may run concurrently, for Concurrency.
	N int `json:"n,omitempty"`
	// USD is the budget of the experiment, for BudgetUSD; 0 is no bound, and nil says nothing.
	USD *float64 `json:"usd,omitempty"`
}

// Status is the status of a running experiment.
type Status struct {
	State       string   `json:"state"`
	Total       int      `json:"total"`
	Done        int      `json:"done"`
	Passed      int      `json:"passed"`
	Failed      int      `json:"failed"`
	Errors      int      `json:"errors"`
	Retries     int      `json:"retries"`
	Queued      int      `json:"queued"`
	Cancelled   int      `json:"cancelled"` // how many cells wait to be requeued
	Held        []Name   `json:"held"`      // which
	Concurrency int      `json:"concurrency"`
	BudgetUSD   *float64 `json:"budgetUsd"` // nil is no bound
	CostUSD     float64  `json:"costUsd"`
	Unpriced    int      `json:"unpriced"` // attempts whose cost is unknown
	Tokens      int64    `json:"tokens"`
	ElapsedMs   int64    `json:"elapsedMs"`
	// BurnUSDPerHour is the hourly cost of attempts that ended lately; nil is unknown.
	BurnUSDPerHour *float64 `json:"burnUsdPerHour"`
	// LeftMs is the time that is left; nil is unknown.
	LeftMs  *Left  `json:"leftMs"`
	Running []Cell `json:"running"`
	// Reason says why it is stopping.
	Reason string `json:"reason,omitempty"`
	PID    int    `json:"pid"`
}

// Left is the time that is left, in milliseconds, with the limits that nineteen of twenty keep.
type Left struct {
	Est int64 `json:"est"`
	Lo  int64 `json:"lo"`
	Hi  int64 `json:"hi"`
}

// Cell is a cell that is running.
type Cell struct {
	Task      string `json:"task"`
	Arm       string `json:"arm"`
	Run       int    `json:"run"`
	Attempt   int    `json:"attempt"`
	StartMs   int64  `json:"startMs"`
	ElapsedMs int64  `json:"elapsedMs"`
	// Where names the worker that runs it; empty: the experiment's own machine.
	Where string `json:"where,omitempty"`
}

// Name names a cell.
type Name struct {
	Task string `json:"task"`
	Arm  string `json:"arm"`
	Run  int    `json:"run"`
}

// Answer is an experiment's answer to a Command.
type Answer struct {
	Status Status `json:"status"`
	// Message says what was done.
	Message string `json:"message,omitempty"`
}

// Refused is the error of a Command that an experiment does not follow.
type Refused struct{ Reason string }

func (e *Refused) Error() string { return e.Reason }

// Engine is an experiment that can be asked and steered. Its methods are called by several
// goroutines.
type Engine interface {
	Status(ctx context.Context) (Status, error)
	// Control carries out a command, and returns what it did. An error is a refusal.
	Control(ctx context.Context, c Command) (message string, err error)
}

// reply is a line that the server sends.
type reply struct {
	Answer
	Error string `json:"error,omitempty"`
}

// The bounds of a conversation.
const (
	timeLimit  = 10 * time.Second
	maxCommand = 64 << 10
	maxClients = 32
)

// Server listens for commands.
type Server struct {
	engine   Engine
	listener *net.UnixListener
	path     string
	cancel   context.CancelFunc
	clients  sync.WaitGroup
}

// Serve listens in a run directory. The caller holds the directory's lock, so an existing socket
// was left by a killed process; it is replaced.
func Serve(dir string, engine Engine) (*Server, error) {
	at, err := openDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	defer at.close()
	// The socket gets its name when only its user can open it.
	draft, final := at.name(SocketFile+".new"), at.name(SocketFile)
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: draft, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(draft, 0o600), os.Rename(draft, final)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for commands: %w", err), listener.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		engine:   engine,
		listener: listener,
		path:     dir + "/" + SocketFile,
		cancel:   cancel,
	}
	s.clients.Go(func() { s.accept(ctx) })
	return s, nil
}

// Close ends all conversations and removes the socket.
func (s *Server) Close() error {
	s.cancel()
	err := errors.Join(s.listener.Close(), os.Remove(s.path))
	s.clients.Wait()
	if errors.Is(err, fs.ErrNotExist) { // the run directory was removed
		return nil
	}
	return err
}

func (s *Server) accept(ctx context.Context) {
	places := make(chan struct{}, maxClients)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			select { // out of file descriptors: others close theirs
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		select {
		case places <- struct{}{}:
			s.clients.Go(func() {
				defer func() { <-places }()
				s.serve(ctx, conn)
			})
		default:
			_ = conn.Close() // the client can ask again
		}
	}
}

func (s *Server) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(timeLimit))
	var command Command
	if json.NewDecoder(io.LimitReader(conn, maxCommand)).Decode(&command) != nil {
		return
	}
	if line, err := json.Marshal(s.answer(ctx, command)); err == nil {
		_, _ = conn.Write(append(line, '\n')) // a client that has gone needs no answer
	}
}

func (s *Server) answer(ctx context.Context, command Command) reply {
	var r reply
	var err error
	if command.Action != Ping {
		r.Message, err = s.engine.Control(ctx, command)
	}
	if err == nil {
		r.Status, err = s.engine.Status(ctx)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// Ask sends a command to the process that works in a run directory.
func Ask(ctx context.Context, dir string, command Command) (*Answer, error) {
	at, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer at.close()
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", at.name(SocketFile))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTSOCK):
		return nil, fmt.Errorf("%s: %w", dir, ErrNotRunning)
	case errors.Is(err, fs.ErrPermission):
		return nil, &Refused{Reason: dir + " is run by another user; ask as that user"}
	case err != nil:
		return nil, fmt.Errorf("ask the experiment: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	line, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("ask the experiment: %w", err)
	}
	var r reply
	err = json.NewDecoder(bufio.NewReader(conn)).Decode(&r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s: the experiment does not answer: %w", dir, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%s: %w: it ended before it answered", dir, ErrNotRunning)
	}
	if r.Error != "" {
		return nil, &Refused{Reason: r.Error}
	}
	return &r.Answer, nil
}
