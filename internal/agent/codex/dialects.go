package codex

import (
	"bytes"
	"slices"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// The names of the program's three formats.
const (
	execDialectName    = "codex-exec"       // what `codex exec --json` prints
	serverDialectName  = "codex-app-server" // the JSON-RPC lines of `codex app-server`
	rolloutDialectName = "codex-rollout"    // the files below sessions/ in the program's home
)

// Dialects implements agent.Agent. The two streams share a decoder, because a conversation may
// begin in one and continue in the other.
func (*Agent) Dialects() []session.Dialect {
	return []session.Dialect{execDialect(), serverDialect(), rolloutDialect()}
}

func execDialect() session.Dialect {
	return session.Dialect{
		Name:      execDialectName,
		Agent:     agentID,
		Recognise: recognised(isExec),
		New:       newStreamDecoder,
	}
}

func serverDialect() session.Dialect {
	return session.Dialect{
		Name:      serverDialectName,
		Agent:     agentID,
		Recognise: recognised(isServer),
		New:       newStreamDecoder,
		Repeats:   isDelta,
	}
}

func rolloutDialect() session.Dialect {
	return session.Dialect{
		Name:      rolloutDialectName,
		Agent:     agentID,
		Recognise: recognised(isRollout),
		New:       func() session.Decoder { return &rolloutDecoder{} },
	}
}

func newStreamDecoder() session.Decoder { return &decoder{} }

// recognised turns a test of parsed events into a test of bytes.
func recognised(is func(jsontape.Value) bool) func([]byte) bool {
	return func(event []byte) bool {
		v, ok := jsontape.Parse(event)
		return ok && v.Kind() == jsontape.Object && is(v)
	}
}

func isExec(v jsontape.Value) bool {
	switch v.TextOf("type") {
	case "thread.started":
		return v.TextOf("thread_id") != ""
	case "turn.started":
		return true
	case "turn.completed":
		return v.Get("usage").Kind() == jsontape.Object
	case "turn.failed":
		return v.Get("error").Kind() == jsontape.Object
	case "item.started", "item.updated", "item.completed":
		item := v.Get("item")
		return item.Get("id").Kind() == jsontape.String && item.Get("type").Kind() == jsontape.String
	}
	return false
}

func isServer(v jsontape.Value) bool {
	switch v.TextOf("method") {
	case "":
		return v.Get("result").TextOf("codexHome") != "" || v.Path("result", "thread").Kind() == jsontape.Object
	case "thread/started", "turn/started", "turn/completed", "item/started", "item/completed",
		"thread/tokenUsage/updated":
		return v.Get("params").Kind() == jsontape.Object
	}
	return false
}

func isRollout(v jsontape.Value) bool {
	switch v.TextOf("type") {
	case "session_meta", "response_item", "event_msg", "turn_context":
		return v.TextOf("timestamp") != "" && v.Get("payload").Kind() == jsontape.Object
	}
	return false
}

// deltaMethods are the notifications whose content a later notification carries whole.
var deltaMethods = []string{
	"item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded",
	"item/reasoning/textDelta",
	"item/commandExecution/outputDelta", "item/fileChange/outputDelta", "item/fileChange/patchUpdated",
}

// isDelta reports whether a line only repeats what a later line carries whole.
func isDelta(line []byte) bool {
	if !bytes.Contains(line, []byte(`elta"`)) && !bytes.Contains(line, []byte(`summaryPartAdded"`)) &&
		!bytes.Contains(line, []byte(`patchUpdated"`)) {
		return false
	}
	v, _ := jsontape.Parse(line)
	return slices.Contains(deltaMethods, v.TextOf("method"))
}

// either returns the one of two fields that is there: the three formats spell the same names
// differently.
func either(v jsontape.Value, snake, camel string) jsontape.Value {
	for _, key := range [...]string{snake, camel} {
		if found := v.Get(key); found.Exists() && found.Kind() != jsontape.Null {
			return found
		}
	}
	return jsontape.Value{}
}
