package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// position is where an event is in the session.
type position struct {
	seq    int
	ms     int64
	source string // of the time
	turn   int
}

// position gives an event its position.
func (f *Fold) position(o Origin) position {
	at := position{seq: f.seq, turn: f.turnOf(o)}
	f.seq++
	at.ms, at.source = f.time(o)
	return at
}

// emit passes an event on and keeps it.
func (f *Fold) emit(o Origin, at position, made EnrichedEvent) {
	f.event = made
	event := &f.event
	event.Seq, event.TimestampMs, event.TsSource, event.TurnIndex = at.seq, at.ms, at.source, at.turn
	event.ElapsedMs = max(0, at.ms-f.session.StartMs)
	event.Parent, event.Lane, event.MessageID, event.RawLine = o.Parent, o.Lane, o.MessageID, o.Line
	if f.opts.OnEvent != nil {
		f.opts.OnEvent(event)
	}
	if !f.opts.Flat {
		f.session.Events = append(f.session.Events, event.clone())
	}
}

// turnOf returns the current turn, or for a sub-agent the turn that called it.
func (f *Fold) turnOf(o Origin) int {
	if o.Parent != "" {
		if turn, known := f.tasks[o.Parent]; known {
			return turn
		}
	}
	return f.turns.index
}

// time prefers the agent's own clock. An event without any time is taken to have happened when the
// one before it did.
func (f *Fold) time(o Origin) (ms int64, source string) {
	ms, source = o.Ts, TsArrival
	switch {
	case o.NativeMs > 0:
		ms, source = o.NativeMs, TsNative
	case ms == 0:
		ms = f.lastMs
	}
	f.session.StartMs = cmp.Or(f.session.StartMs, ms)
	f.lastMs = max(f.lastMs, ms)
	return ms, source
}

// clone makes an event's strings its own.
func (e EnrichedEvent) clone() EnrichedEvent {
	e.Text, e.Label = strings.Clone(e.Text), strings.Clone(e.Label)
	e.Parent, e.Lane, e.MessageID = strings.Clone(e.Parent), strings.Clone(e.Lane), strings.Clone(e.MessageID)
	if e.Tool != nil {
		e.Tool = e.Tool.clone()
	}
	if e.Result != nil {
		r := *e.Result
		r.CallID, r.Preview, r.Content = strings.Clone(r.CallID), strings.Clone(r.Preview), strings.Clone(r.Content)
		if r.ExitCode != nil {
			r.ExitCode = new(*r.ExitCode)
		}
		e.Result = &r
	}
	return e
}

func (c *ToolCall) clone() *ToolCall {
	own := *c
	own.CallID, own.NativeName = strings.Clone(c.CallID), strings.Clone(c.NativeName)
	own.Command = strings.Clone(c.Command)
	var args bytes.Buffer
	if err := json.Compact(&args, c.Args); err == nil {
		own.Args = args.Bytes()
	} else { // what an agent prints may be lenient JSON; the stored session is not
		own.Args, _ = json.Marshal(string(c.Args))
	}
	own.Paths = make([]string, len(c.Paths))
	for i, path := range c.Paths {
		own.Paths[i] = strings.Clone(path)
	}
	if len(own.Paths) == 0 {
		own.Paths = nil
	}
	return &own
}
