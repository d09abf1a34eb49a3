package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
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

// emit passes an event on and keeps it. What a decoder hands in are views of its buffers: whoever
// sees the event gets a copy.
func (f *Fold) emit(o Origin, at position, made EnrichedEvent) {
	f.event = made
	event := &f.event
	event.Seq, event.TimestampMs, event.TsSource, event.TurnIndex = at.seq, at.ms, at.source, at.turn
	event.ElapsedMs = max(0, at.ms-f.session.StartMs)
	event.Parent, event.Lane, event.MessageID, event.RawLine = o.Parent, o.Lane, o.MessageID, o.Line
	if f.opts.Borrower == nil || !f.opts.Flat {
		event = event.own()
	}
	if f.opts.OnEvent != nil {
		f.opts.OnEvent(event)
	}
	if !f.opts.Flat {
		f.session.Events = append(f.session.Events, event.stored())
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

// own returns a copy of an event that shares nothing with it.
func (e EnrichedEvent) own() *EnrichedEvent {
	for _, text := range []*string{&e.Text, &e.Label, &e.Parent, &e.Lane, &e.MessageID} {
		*text = strings.Clone(*text)
	}
	if e.Tool != nil {
		call := *e.Tool
		call.CallID, call.NativeName = strings.Clone(call.CallID), strings.Clone(call.NativeName)
		call.Command, call.Args = strings.Clone(call.Command), bytes.Clone(call.Args)
		call.Paths = slices.Clone(call.Paths)
		for i, path := range call.Paths {
			call.Paths[i] = strings.Clone(path)
		}
		e.Tool = &call
	}
	if e.Result != nil {
		r := *e.Result
		r.CallID, r.Content = strings.Clone(r.CallID), strings.Clone(r.Content)
		r.Preview = r.Content[:len(r.Preview)]
		if r.ExitCode != nil {
			r.ExitCode = new(*r.ExitCode)
		}
		e.Result = &r
	}
	return &e
}

// stored returns the event as sessions keep it: what an agent prints may be lenient JSON.
func (e EnrichedEvent) stored() EnrichedEvent {
	if e.Tool != nil {
		call := *e.Tool
		var args bytes.Buffer
		if err := json.Compact(&args, call.Args); err == nil {
			call.Args = args.Bytes()
		} else {
			call.Args, _ = json.Marshal(string(call.Args))
		}
		if len(call.Paths) == 0 {
			call.Paths = nil
		}
		e.Tool = &call
	}
	return e
}
