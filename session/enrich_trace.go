package session

import (
	"bytes"

	"github.com/valyala/fastjson"

	"github.com/fit-eval/fit/trace"
)

// ours reports whether an event is one of those that stand for what an agent printed and that was no event of its own.
func ours(event []byte) bool {
	for _, prefix := range ourPrefixes {
		if bytes.HasPrefix(event, prefix) {
			return true
		}
	}
	return false
}

var ourPrefixes = [][]byte{[]byte(`{"type":"raw"`), []byte(`{"type":"stderr"`), []byte(`{"type":"skipped"`), []byte(`{"type":"dropped"`)}

// note counts such an event.
func (e *Enricher) note(event []byte, at Stamp) {
	v, err := e.parser.ParseBytes(event)
	if err != nil {
		e.bad(at.Lane, at.Line)
		return
	}
	fold := e.lane(at.Lane).fold
	switch text(v, "type") {
	case trace.TypeRaw:
		fold.ParseError()
	case trace.TypeSkipped:
		fold.Skipped(1)
	case trace.TypeDropped:
		fold.Dropped(v.GetInt("count"))
	}
}

// orchestrator takes in what the harness wrote about an agent: who runs it, what it was asked, what was injected, how it ended.
func (e *Enricher) orchestrator(event []byte, at Stamp) {
	v, err := e.parser.ParseBytes(event)
	if err != nil {
		e.broken++
		return
	}
	name := text(v, "agent")
	if name == "" {
		return
	}
	switch text(v, "type") {
	case trace.TypeAgentStart:
		e.agentStart(v, name)
	case trace.TypeAgentEnd:
		if code := v.Get("exitCode"); code != nil {
			e.lane(name).fold.Exited(code.GetInt(), v.GetBool("timedOut"))
		}
	case trace.TypeSystemPrompt:
		l := e.lane(name)
		at.Lane = name
		l.fold.SystemPrompt(Origin{Stamp: at}, text(v, "source"), text(v, "label"), text(v, "content"))
	case trace.TypePrompt:
		l := e.lane(name)
		at.Lane = name
		l.fold.Message(Origin{Stamp: at}, "user", text(v, "text"), "prompt")
	}
}

func (e *Enricher) agentStart(v *fastjson.Value, name string) {
	l := e.lane(name)
	l.agent = AgentID(bytes.Clone(v.GetStringBytes("runtime")))
	l.fold.Identify(Identity{Version: text(v, "version"), Model: text(v, "model")})
	if dialect, known := e.Dialects.Named(text(v, "protocol")); known && l.decoder == nil {
		l.speak(dialect)
	}
}
