package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// Conversation is the part that all adapters of agent programs share: it starts the program, passes
// on every line it prints, follows the stream with the dialect's decoder to see turns, usage and
// the final event, enforces the limits that the agent does not have itself, and reports in the end
// how the prompt went.
//
// An adapter uses it in one of two ways:
//
//   - One process per prompt: RunOnce with the command line and the prompt on standard input (or
//     among the arguments). Each call starts a process.
//   - A long-lived protocol: Open once, then Turn for every prompt, with functions that send the
//     prompt and that ask the agent to stop; Send writes lines.
//
// Prompts are given one at a time; Close may be called at any time.
type Conversation struct {
	cfg ConversationConfig

	prompting sync.Mutex // held while a prompt runs

	mu      sync.Mutex
	meter   meter
	id      string
	stdout  tally
	stderr  tally
	dropped int
	of      string
	// lastStderr is the last line on standard error, where programs say why they could not start.
	lastStderr string
	printed    bool          // the prompt's program has printed text, where that is all it prints
	changed    chan struct{} // closed and replaced whenever an event was taken in
	proc       *process      // the last one that was started

	deliver  sync.Mutex // held while the caller sees an event
	announce sync.Once
}

// ConversationConfig says what a Conversation runs.
type ConversationConfig struct {
	Agent   session.AgentID
	Config  Config
	Dialect session.Dialect
	// Started is what Config.Started will receive. Version, Protocol, Model and Argv are filled in.
	Started Started
	// EnforceTurns makes the conversation enforce Config.MaxTurns, for agents that do not do it
	// themselves.
	EnforceTurns bool
	// Observe, if set, sees every native event after it was passed on: to answer requests of a
	// control protocol, to check the first event. It is called from the goroutine that reads the
	// output and must not block; Send does not. An error ends the process; the result carries it.
	Observe func(event []byte) error
	// Settle, if set, says how long to wait after a final event for signs that the agent continues,
	// for example because it retries.
	Settle func(session.Final) time.Duration
	// Plain, if set, says that standard output is text, and sees every line of it: no line is a
	// native event, whatever it looks like. A run of such a program counts as one turn, because
	// nothing shows how often it asked a model, or as none if it ends without printing anything.
	Plain func(line []byte)
	// Closing, if set, returns the final event of a process that has ended by itself without one,
	// for programs whose exit code says how they did. lastStderr is the last line on standard
	// error.
	Closing func(exitCode int, lastStderr string) []byte
}

// Command is one start of the agent's program.
type Command struct {
	Argv  []string
	Env   []string // the complete environment
	Stdin string   // what the program reads in RunOnce
	Dir   string   // where it starts; empty: in the working directory
}

// tally counts and hashes what went by.
type tally struct {
	bytes int64
	hash  hash.Hash
}

func (t *tally) add(p []byte) {
	t.bytes += int64(len(p))
	t.hash.Write(p)
}

func (t *tally) sum() string { return hex.EncodeToString(t.hash.Sum(nil)) }

// DefaultGrace is how long an agent may take between being asked to stop and being killed, in all.
const DefaultGrace = 5 * time.Second

// askGrace returns the part of the grace period in which an agent that is asked in its own protocol
// may stop; the rest is for the signal that comes then.
func (c *Conversation) askGrace() time.Duration { return c.cfg.Config.Grace * 2 / 3 }

// StartTimeout is how long an agent's program may take to answer a request before the first prompt:
// some attach their tool servers before, and take more than a minute on a busy machine.
const StartTimeout = 3 * time.Minute

// linger is how long a process may keep running after its final event.
const linger = 30 * time.Second

// NewConversation prepares a conversation; nothing is started.
func NewConversation(cfg ConversationConfig) *Conversation {
	cfg.Config.Grace = cmp.Or(cfg.Config.Grace, DefaultGrace)
	cfg.Started.Protocol, cfg.Started.Model = cfg.Dialect.Name, cfg.Config.Model
	if cfg.Config.Installation != nil {
		cfg.Started.Version = cfg.Config.Installation.Version
	}
	return &Conversation{
		cfg:     cfg,
		meter:   newMeter(cfg),
		id:      cfg.Config.Resume,
		stdout:  tally{hash: sha256.New()},
		stderr:  tally{hash: sha256.New()},
		changed: make(chan struct{}),
	}
}

// ID returns the agent's id of the conversation; empty until it is known.
func (c *Conversation) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// InTurn runs one prompt at a time.
func (c *Conversation) InTurn(prompt func() (Result, error)) (Result, error) {
	c.prompting.Lock()
	defer c.prompting.Unlock()
	result, err := prompt()
	if err != nil {
		return Result{}, fmt.Errorf("run agent %s: %w", c.cfg.Agent, err)
	}
	return result, nil
}

// RunOnce runs the program for one prompt, to its end.
func (c *Conversation) RunOnce(ctx context.Context, cmd Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	before := c.mark() // before the start: a quick program may be done before we look
	proc := c.start(ctx, cmd, strings.NewReader(cmd.Stdin), nil)
	reason := c.follow(ctx, proc, nil)
	if reason == reasonFinal {
		c.awaitExit(ctx, proc)
	}
	proc.end(reason.cause())
	<-proc.done
	if !proc.started() {
		return Result{}, proc.err
	}
	c.countPlain(reason)
	if c.cfg.Closing != nil && reason == reasonExit && proc.endedByItself() && !proc.wasKilled() {
		c.event(c.cfg.Closing(proc.spawned.ExitCode, c.lastStderr))
	}
	return c.result(ctx, proc, before, reason), nil
}

// Open starts the program of a long-lived protocol. It ends with Close, not with the context.
func (c *Conversation) Open(ctx context.Context, cmd Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	reader, writer := io.Pipe()
	c.start(context.WithoutCancel(ctx), cmd, reader, newOutbox(writer))
	return nil
}

// Send queues one line for the program's standard input. It does not block; it returns an error if
// the program keeps asking and does not read the answers.
func (c *Conversation) Send(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message to agent: %w", err)
	}
	proc := c.current()
	if proc == nil || proc.input == nil {
		return errors.New("the agent's process is not running")
	}
	return proc.input.put(append(line, '\n'))
}

// Note records something about the conversation that the program did not print, such as what it was
// sent, as an event of the program: the caller and the dialect's decoder see it.
func (c *Conversation) Note(event []byte) {
	c.pass(event)
	c.mu.Lock()
	c.meter.take(event, time.Now().UnixMilli())
	c.mu.Unlock()
}

// Alive reports whether the process of a long-lived protocol is running.
func (c *Conversation) Alive() bool {
	proc := c.current()
	return proc != nil && !proc.exited()
}

// Turn gives a prompt to the program that Open has started, by calling begin, and waits for the
// final event. When the context ends or a limit is reached, interrupt asks the agent to stop; if it
// does not, its process is killed.
func (c *Conversation) Turn(ctx context.Context, begin, interrupt func() error) (Result, error) {
	proc := c.current()
	if proc == nil {
		return Result{}, errors.New("the agent's process is not running")
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	before := c.mark()
	if err := begin(); err != nil {
		return Result{}, err
	}
	reason := c.follow(ctx, proc, interrupt)
	if reason == reasonExit && !proc.started() {
		return Result{}, proc.err
	}
	return c.result(ctx, proc, before, reason), nil
}

// Until waits until check returns true, calling it after every event; it is for the handshake of a
// protocol. It fails when the process or the context ends first.
func (c *Conversation) Until(ctx context.Context, check func() bool) error {
	proc := c.current()
	for {
		changed := c.watch()
		if check() {
			return nil
		}
		select {
		case <-changed:
		case <-proc.done:
			if check() {
				return nil
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			return withStderr(proc.failure(), c.lastStderr)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the program of a long-lived protocol: its input is closed, then it gets a signal, and
// after the grace period it is killed. It is safe to call it more than once.
func (c *Conversation) Close() error {
	proc := c.current()
	if proc == nil {
		return nil
	}
	if proc.input != nil {
		proc.input.close()
	}
	timer := time.NewTimer(c.askGrace())
	defer timer.Stop()
	select {
	case <-proc.done:
	case <-timer.C:
		proc.end(errClosed)
		<-proc.done
	}
	if proc.input != nil {
		proc.input.wait()
	}
	return nil // the caller of the last prompt knows how it ended
}

var errClosed = errors.New("session closed")

func (c *Conversation) current() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proc
}

// announceStart reports the start once, before the first event.
func (c *Conversation) announceStart() {
	c.announce.Do(func() {
		if c.cfg.Config.Started != nil {
			c.cfg.Config.Started(c.cfg.Started)
		}
	})
}

// DefaultOutput is how much an agent may print. Traces of long runs have a tenth of it.
const DefaultOutput = 100 << 20

func (c *Config) outputLimit() int64 { return cmp.Or(c.OutputLimit, DefaultOutput) }

func (c *Conversation) spec(cmd Command, stdin io.Reader, longLived bool) sandbox.SpawnSpec {
	cfg := c.cfg.Config
	grace := cfg.Grace
	if longLived {
		grace -= c.askGrace()
	}
	spec := sandbox.SpawnSpec{
		Argv:      cmd.Argv,
		Dir:       cmp.Or(cmd.Dir, cfg.Dir),
		Env:       cmd.Env,
		Stdin:     stdin,
		Grace:     grace,
		MaxOutput: cfg.outputLimit(),
		Isolation: cfg.Isolation,
		Limits:    cfg.Limits,
		OnStart:   func(int) { c.announceStart() },
	}
	if cfg.Isolation.Isolates() {
		c.isolate(&spec)
	}
	return spec
}

// isolate lets the program see what it needs: itself, its working directory, in which it may write
// unless it is declared read-only, and its home.
func (c *Conversation) isolate(spec *sandbox.SpawnSpec) {
	cfg := c.cfg.Config
	spec.Isolation = cfg.Isolated(cfg.Home)
	if cfg.Installation != nil {
		spec.Isolation.ReadOnly = slices.Concat(spec.Isolation.ReadOnly, cfg.Installation.ReadPaths)
	}
	for _, server := range cfg.MCPServers {
		if server.Socket != "" {
			spec.Isolation.ReadOnly = slices.Concat(spec.Isolation.ReadOnly, []string{server.Socket, server.Command})
		}
	}
	// links into the installation are not visible inside
	if real, err := filepath.EvalSymlinks(spec.Argv[0]); err == nil {
		spec.Argv = slices.Concat([]string{real}, spec.Argv[1:])
	}
}
