package agent

import (
	"bytes"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/trace"
)

// take handles a line of standard output.
func (c *Conversation) take(line []byte) {
	if c.cfg.Plain != nil {
		if c.plain(line) {
			c.pass(trace.RawEvent(trace.TypeRaw, line))
		}
		return
	}
	event, native := asNative(line)
	if event == nil {
		return
	}
	if native && c.cfg.Dialect.Repeats != nil && c.cfg.Dialect.Repeats(event) {
		c.mu.Lock()
		c.dropped++
		if c.of == "" {
			v, _ := jsontape.Parse(event)
			c.of = strings.Clone(v.TextOf("type") + v.TextOf("method"))
		}
		c.mu.Unlock()
		return
	}
	if !native {
		c.pass(event)
		return
	}
	c.event(event)
}

// event passes a native event on and updates the state from it.
func (c *Conversation) event(event []byte) {
	c.pass(event)
	c.mu.Lock()
	used, more := c.meter.take(event, time.Now().UnixMilli())
	if id := c.meter.fold.Identity().SessionID; id != "" {
		c.id = id
	}
	c.mu.Unlock()
	if more && c.cfg.Config.Consumed != nil {
		c.cfg.Config.Consumed(used)
	}
	if c.cfg.Observe != nil {
		if err := c.cfg.Observe(event); err != nil {
			c.refuse(err)
		}
	}
	c.notify()
}

// refuse ends the process. What the agent reports until it stops does not count, unless it had
// finished before.
func (c *Conversation) refuse(err error) {
	c.mu.Lock()
	proc := c.proc
	if proc.refused == nil && c.meter.final() == nil {
		proc.refused = err
	}
	c.mu.Unlock()
	proc.end(err)
}

// pass hands an event to the caller; one at a time, whichever stream it came from.
func (c *Conversation) pass(event []byte) {
	c.announceStart()
	c.deliver.Lock()
	defer c.deliver.Unlock()
	if c.cfg.Config.Events != nil {
		c.cfg.Config.Events(event)
	}
}

func (c *Conversation) notify() {
	c.mu.Lock()
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
}

func (c *Conversation) watch() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// flushDropped says how many repeating lines were left out since the last time.
func (c *Conversation) flushDropped() {
	c.mu.Lock()
	count, of := c.dropped, c.of
	c.dropped, c.of = 0, ""
	c.mu.Unlock()
	if count > 0 {
		c.pass(droppedEvent(count, of))
	}
}

// maxStderr is how much of the last line on standard error is repeated in an error message.
const maxStderr = 300

// stderrLine handles a line of standard error.
func (c *Conversation) stderrLine(line []byte) {
	line = bytes.TrimRight(line, "\r")
	if len(line) == 0 {
		return
	}
	c.pass(trace.RawEvent(trace.TypeStderr, line))
	c.mu.Lock()
	c.lastStderr = c.cfg.Config.Redactor.Cut(string(line), maxStderr)
	c.mu.Unlock()
}
