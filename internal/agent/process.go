package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// process is one run of the agent's program.
type process struct {
	argv   []string
	cancel context.CancelCauseFunc
	input  *outbox // of a long-lived protocol
	done   chan struct{}
	// refused is why one of its events is not acceptable; the lock of the conversation guards it.
	refused error

	// Valid after done.
	spawned sandbox.SpawnResult
	err     error
	cause   error // why we ended it
}

// start runs a command in the background. The caller waits for process.done.
func (c *Conversation) start(ctx context.Context, cmd Command, stdin io.Reader, input *outbox) *process {
	ctx, cancel := context.WithCancelCause(ctx)
	proc := &process{
		argv:   cmd.Argv,
		cancel: cancel,
		input:  input,
		done:   make(chan struct{}),
	}
	c.mu.Lock()
	c.proc = proc
	c.mu.Unlock()
	stdout := &lineSplitter{limit: trace.MaxLine, line: c.take, tooLong: c.skipOutput}
	stderr := &lineSplitter{limit: trace.MaxLine, line: c.stderrLine, tooLong: c.skip}
	go func() {
		defer close(proc.done)
		defer cancel(nil)
		proc.spawned, proc.err = c.cfg.Config.Spawner.Spawn(ctx, c.spec(cmd, stdin, input != nil),
			counted{stdout, &c.stdout},
			counted{stderr, &c.stderr})
		stdout.close()
		stderr.close()
		proc.cause = context.Cause(ctx)
		if proc.input != nil {
			proc.input.close()
		}
		if unread, ok := stdin.(io.Closer); ok { // a writer to a program that never ran must notice
			_ = unread.Close()
		}
	}()
	return proc
}

// counted is a writer that tallies a stream.
type counted struct {
	to    io.Writer
	tally *tally
}

func (w counted) Write(p []byte) (int, error) {
	w.tally.add(p)
	return w.to.Write(p)
}

func (c *Conversation) skipOutput(length int64) {
	c.skip(length)
	if c.cfg.Plain != nil {
		c.plain(fmt.Appendf(nil, "[a line of %d bytes is left out]", length))
	}
}

// plain handles a line of text, and reports whether it is not blank.
func (c *Conversation) plain(line []byte) bool {
	c.cfg.Plain(line)
	if len(bytes.TrimSpace(line)) == 0 {
		return false
	}
	c.mu.Lock()
	c.printed = true
	c.mu.Unlock()
	return true
}

// countPlain counts the turn of a program that prints text. A program that ended by itself and
// printed nothing has shown no work; one that was stopped may have been working.
func (c *Conversation) countPlain(why reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Plain != nil && (c.printed || why != reasonExit) {
		c.meter.fold.Turn()
	}
}

func (c *Conversation) skip(length int64) {
	c.pass(skippedEvent(length))
	c.mu.Lock()
	c.meter.fold.Skipped()
	c.mu.Unlock()
}

// end stops the process; the first reason given stays.
func (p *process) end(reason error) { p.cancel(reason) }

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// started reports, after done, whether the program ran at all.
func (p *process) started() bool {
	return p.err == nil || p.spawned.StdoutBytes > 0 || p.spawned.StderrBytes > 0
}

// endedByItself reports, after done, whether the program exited without being stopped.
func (p *process) endedByItself() bool {
	return p.err == nil && p.cause == nil && p.spawned.Signal == "" && p.spawned.Exceeded == "" &&
		!p.spawned.OutputLimit && !p.spawned.TimedOut && !p.spawned.Cancelled
}

// wasKilled reports, after done, whether somebody else killed the process. Where a sandbox or a
// shell is in between, the exit code tells the signal.
func (p *process) wasKilled() bool {
	return p.cause == nil && !p.spawned.OutputLimit && !p.spawned.TimedOut && !p.spawned.Cancelled &&
		(slices.Contains([]string{"SIGKILL", "SIGABRT", "SIGTERM"}, p.spawned.Signal) ||
			slices.Contains([]int{128 + 9, 128 + 6, 128 + 15}, p.spawned.ExitCode))
}

// failure returns, after done, why the process failed.
func (p *process) failure() error {
	switch {
	case p.err != nil:
		return p.err
	case p.cause != nil && !errors.Is(p.cause, context.Canceled):
		return p.cause
	case p.spawned.Exceeded != "":
		return fmt.Errorf("the agent's processes used more %s than their limit", p.spawned.Exceeded)
	case p.wasKilled():
		said := cmp.Or(p.spawned.Signal, fmt.Sprintf("exit code %d", p.spawned.ExitCode))
		return fmt.Errorf("%w (%s)", ErrKilled, said)
	case p.spawned.Signal != "":
		return fmt.Errorf("the agent's process was ended by %s", p.spawned.Signal)
	default:
		return fmt.Errorf("the agent's process ended with exit code %d", p.spawned.ExitCode)
	}
}

// reason says why the wait for a prompt's end was over.
type reason int

const (
	reasonFinal reason = iota // the agent's final event
	reasonExit                // its process ended without one
	reasonContext
	reasonTurns
)

var errTurnLimit = errors.New("turn limit reached")

func (r reason) cause() error {
	if r == reasonTurns {
		return errTurnLimit
	}
	return nil
}

func (c *Conversation) mark() mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.printed = false
	return c.meter.begin()
}

// follow waits until the prompt is over. Where it has to be stopped and interrupt is given, the
// agent is asked first, then it gets a signal, and it is killed after the grace period; without
// interrupt the caller ends the process.
func (c *Conversation) follow(ctx context.Context, proc *process, interrupt func() error) reason {
	why := c.await(ctx, proc, true)
	if why == reasonFinal || why == reasonExit || interrupt == nil {
		return why
	}
	if err := interrupt(); err == nil {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.askGrace())
		defer cancel()
		if stopped := c.await(patience, proc, false); stopped == reasonFinal || stopped == reasonExit {
			return why
		}
	}
	proc.end(errors.New("did not stop when asked to"))
	<-proc.done
	return why
}

// await waits for the final event, the end of the process, the context, or a limit.
func (c *Conversation) await(ctx context.Context, proc *process, limits bool) reason {
	var settled <-chan time.Time
	var final *session.Final
	for {
		changed := c.watch()
		// checked first, so that an event after the abort is not taken for an earlier one
		earlier, aborted := final, ctx.Err() != nil
		var over reason
		final, over = c.progress()
		switch {
		case aborted && earlier == nil:
			return reasonContext
		case over != reasonExit && limits:
			return over
		case final != nil:
			wait := time.Duration(0)
			if c.cfg.Settle != nil {
				wait = c.cfg.Settle(*final)
			}
			if wait == 0 {
				return reasonFinal
			}
			settled = time.After(wait)
		default:
			settled = nil
		}
		select {
		case <-changed:
		case <-settled:
			return reasonFinal
		case <-proc.done:
			if final == nil && ctx.Err() != nil {
				return reasonContext // and that is why it ended
			}
			if final, _ := c.progress(); final != nil {
				return reasonFinal
			}
			return reasonExit
		case <-ctx.Done():
			if final != nil && final.Outcome == session.OutcomeSuccess {
				return reasonFinal // it was there first
			}
			return reasonContext
		}
	}
}

// progress returns the final event of the current prompt, if it has come, and the limit that is
// reached, or reasonExit if none is.
func (c *Conversation) progress() (*session.Final, reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.meter.final(), c.meter.over
}

// awaitExit gives a process that has finished its work the time to end by itself.
func (c *Conversation) awaitExit(ctx context.Context, proc *process) {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-proc.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// outbox feeds a process's standard input without blocking the writer.
type outbox struct {
	mu      sync.Mutex
	ready   *sync.Cond
	queue   [][]byte
	waiting int // bytes of the queue
	closed  bool
	done    chan struct{}
}

// maxWaiting is how much may wait for a program that does not read its input.
const maxWaiting = 64 << 20

var errNotReading = errors.New("the agent does not read its standard input")

func newOutbox(to io.WriteCloser) *outbox {
	o := &outbox{done: make(chan struct{})}
	o.ready = sync.NewCond(&o.mu)
	go func() {
		defer close(o.done)
		defer to.Close()
		for {
			line, ok := o.next()
			if !ok {
				return
			}
			if _, err := to.Write(line); err != nil {
				o.close() // the process is gone; how it ended is reported elsewhere
				return
			}
		}
	}()
	return o
}

func (o *outbox) next() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closed {
		o.ready.Wait()
	}
	if len(o.queue) == 0 {
		return nil, false
	}
	line := o.queue[0]
	o.queue = o.queue[1:]
	o.waiting -= len(line)
	return line, true
}

func (o *outbox) put(line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil // how the process ended is reported elsewhere
	}
	// one line alone may be longer, as prompts can be
	if o.waiting > 0 && o.waiting+len(line) > maxWaiting {
		return errNotReading
	}
	o.queue = append(o.queue, line)
	o.waiting += len(line)
	o.ready.Signal()
	return nil
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.ready.Signal()
}

func (o *outbox) wait() { <-o.done }
