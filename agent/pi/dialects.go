package pi

import (
	"bytes"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// The names of the dialects: what the program prints with `--mode json`, what it says with `--mode
// rpc`, and the files it keeps in its sessions directory.
const (
	JSONDialectName = "pi-json"
	RPCDialectName  = "pi-rpc"
	DiskDialectName = "pi-sessions"
)

// JSONDialect is the stream of `--mode json`.
func JSONDialect() session.Dialect {
	return session.Dialect{
		Name:      JSONDialectName,
		Agent:     ID,
		Recognise: recogniseEvent,
		Repeats:   repeats,
		New:       func() session.Decoder { return newDecoder() },
	}
}

// RPCDialect is the stream of `--mode rpc`: the same events, and responses to what was asked.
func RPCDialect() session.Dialect {
	return session.Dialect{
		Name:      RPCDialectName,
		Agent:     ID,
		Recognise: recogniseResponse,
		Repeats:   repeats,
		New:       func() session.Decoder { return newDecoder() },
	}
}

// DiskDialect is the format of the session files. Their first line is that of the JSON stream too,
// so it is the lines after it that tell.
func DiskDialect() session.Dialect {
	return session.Dialect{
		Name:      DiskDialectName,
		Agent:     ID,
		Recognise: recogniseEntry,
		New:       func() session.Decoder { return &diskDecoder{decoder: newDecoder()} },
	}
}

// recogniseEvent says yes to events whose names nobody else uses.
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

// repeats finds the lines that carry everything so far once more for every piece that is new, so
// that the output grows as the square of an answer.
func repeats(line []byte) bool {
	for _, prefix := range repeating {
		if bytes.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

var repeating = [][]byte{[]byte(`{"type":"message_update"`), []byte(`{"type":"tool_execution_update"`)}
