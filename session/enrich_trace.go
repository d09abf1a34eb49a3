package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/trace"
)

// isRawOutput reports whether an event stands for output of an agent that was not an event.
func isRawOutput(event []byte) bool {
	if len(event) < 10 || (event[9] != 'r' && event[9] != 's' && event[9] != 'd') { // most are of other types
		return false
	}
	return slices.ContainsFunc(rawOutputPrefixes, func(prefix []byte) bool { return bytes.HasPrefix(event, prefix) })
}

var rawOutputPrefixes = [][]byte{
	[]byte(`{"type":"raw"`), []byte(`{"type":"stderr"`), []byte(`{"type":"skipped"`),
	[]byte(`{"type":"dropped"`),
}

// note counts such an event.
func (e *Enricher) note(event []byte, at Stamp) {
	v, ok := e.parser.Parse(event)
	if !ok {
		e.bad(at.Lane, at.Line)
		return
	}
	fold := e.lane(at.Lane).fold
	switch v.TextOf("type") {
	case trace.TypeRaw:
		fold.ParseError()
	case trace.TypeSkipped:
		fold.Skipped()
	case trace.TypeDropped:
		fold.Dropped(v.Get("count").Int())
	}
}

// orchestrator reads the harness's lines about an agent: what runs it, what it was asked, what was
// injected, how it ended.
func (e *Enricher) orchestrator(event []byte, at Stamp) {
	v, ok := e.parser.Parse(event)
	if !ok {
		e.broken++
		return
	}
	name := v.TextOf("agent")
	if name == "" {
		return
	}
	switch v.TextOf("type") {
	case trace.TypeAgentStart:
		e.agentStart(v, name)
	case trace.TypeAgentEnd:
		e.agentEnd(v, name)
	case trace.TypeSystemPrompt:
		l := e.lane(name)
		at.Lane = name
		l.fold.SystemPrompt(Origin{Stamp: at}, v.TextOf("source"), v.TextOf("label"), v.TextOf("content"))
	case trace.TypeModelCall:
		e.modelCall(event, name)
	case trace.TypePrompt:
		l := e.lane(name)
		at.Lane = name
		l.fold.Message(Origin{Stamp: at}, "user", v.TextOf("text"), "prompt")
	}
}

// modelCall reads a call that the gateway saw.
func (e *Enricher) modelCall(event []byte, name string) {
	var call calls.Call
	if json.Unmarshal(event, &call) != nil {
		e.broken++
		return
	}
	e.lane(name).fold.ModelCall(call)
}

func (e *Enricher) agentStart(v jsontape.Value, name string) {
	l := e.lane(name)
	l.agent = AgentID(strings.Clone(v.TextOf("runtime")))
	l.fold.Identify(Identity{Version: v.TextOf("version"), Model: v.TextOf("model")})
	if dialect, known := e.Dialects.Named(v.TextOf("protocol")); known && l.decoder == nil {
		l.setDialect(dialect)
	}
}

// agentEnd reads how an agent's process ran.
func (e *Enricher) agentEnd(v jsontape.Value, name string) {
	code := v.Get("exitCode")
	if !code.Exists() {
		return
	}
	fold := e.lane(name).fold
	timedOut := v.Get("timedOut").Bool()
	fold.Exited(code.Int(), timedOut)
	own := func(key string) string { return strings.Clone(v.TextOf(key)) }
	process := Process{
		Argv:         []string{},
		Binary:       own("binary"),
		BinarySHA256: own("binarySha256"),
		Auth:         own("auth"),
		StartMs:      v.Get("startMs").Int64(),
		EndMs:        v.Get("endMs").Int64(),
		TimedOut:     timedOut,
		Signal:       own("signal"),
	}
	for word := range v.Get("argv").Elements() {
		process.Argv = append(process.Argv, strings.Clone(word.Text()))
	}
	if len(process.Argv) > 0 {
		fold.Started(process)
	}
}
