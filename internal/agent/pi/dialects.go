package pi

import (
	"bytes"
	"slices"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// The names of the dialects: what the program prints with `--mode json`, what it says with `--mode
// rpc`, and the files it keeps in its sessions directory.
const (
	jsonDialectName = "pi-json"
	rpcDialectName  = "pi-rpc"
	diskDialectName = "pi-sessions"
)

// jsonDialect returns the stream of `--mode json`.
func jsonDialect() session.Dialect {
	return session.Dialect{
		Name:      jsonDialectName,
		Agent:     agentID,
		Recognise: recogniseEvent,
		Repeats:   repeats,
		New:       func() session.Decoder { return &decoder{} },
	}
}

// rpcDialect returns the stream of `--mode rpc`: the same events, and responses to what was asked.
func rpcDialect() session.Dialect {
	return session.Dialect{
		Name:      rpcDialectName,
		Agent:     agentID,
		Recognise: recogniseResponse,
		Repeats:   repeats,
		New:       func() session.Decoder { return &decoder{} },
	}
}

// diskDialect returns the format of the session files. Their first line is also that of the JSON
// stream, so the lines after it distinguish them.
func diskDialect() session.Dialect {
	return session.Dialect{
		Name:      diskDialectName,
		Agent:     agentID,
		Recognise: recogniseEntry,
		New:       func() session.Decoder { return &diskDecoder{decoder: &decoder{}} },
	}
}

// recogniseEvent reports whether an event has a name that no other format uses.
func recogniseEvent(event []byte) bool {
	v, ok := jsontape.Parse(event)
	if !ok || v.Get("parentId").Exists() {
		return false
	}
	switch v.TextOf("type") {
	case "agent_start", "turn_start":
		return true
	case "message_start", "message_update", "message_end":
		return v.Get("message").TextOf("role") != ""
	case "tool_execution_start", "tool_execution_update", "tool_execution_end":
		return v.Get("toolCallId").Exists()
	case "agent_end":
		return v.Get("messages").Exists()
	case "auto_retry_start", "auto_retry_end":
		return v.Get("attempt").Exists()
	}
	return false
}

func recogniseResponse(event []byte) bool {
	v, ok := jsontape.Parse(event)
	return ok && v.TextOf("type") == "response" && v.TextOf("command") != "" && v.Get("success").Exists()
}

func recogniseEntry(event []byte) bool {
	v, ok := jsontape.Parse(event)
	if !ok || !v.Get("parentId").Exists() || !v.Get("id").Exists() || !v.Get("timestamp").Exists() {
		return false
	}
	switch v.TextOf("type") {
	case "message":
		return v.Get("message").TextOf("role") != ""
	case "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message", "label",
		"session_info":
		return true
	}
	return false
}

// repeats reports whether a line repeats the whole answer so far to add one piece to it. Such lines
// make the output grow with the square of the answer.
func repeats(line []byte) bool {
	return slices.ContainsFunc(repeating, func(prefix []byte) bool { return bytes.HasPrefix(line, prefix) })
}

var repeating = [][]byte{[]byte(`{"type":"message_update"`), []byte(`{"type":"tool_execution_update"`)}
