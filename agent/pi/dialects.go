package pi

import (
	"bytes"

	"github.com/valyala/fastjson"

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
	v, err := fastjson.ParseBytes(event)
	if err != nil || v.Type() != fastjson.TypeObject || v.Exists("parentId") {
		return false
	}
	switch str(v, "type") {
	case "agent_start", "turn_start":
		return true
	case "message_start", "message_update", "message_end":
		return str(v.Get("message"), "role") != ""
	case "tool_execution_start", "tool_execution_update", "tool_execution_end":
		return v.Exists("toolCallId")
	case "agent_end":
		return v.Exists("messages")
	case "auto_retry_start", "auto_retry_end":
		return v.Exists("attempt")
	}
	return false
}

func recogniseResponse(event []byte) bool {
	v, err := fastjson.ParseBytes(event)
	return err == nil && str(v, "type") == "response" && str(v, "command") != "" && v.Exists("success")
}

func recogniseEntry(event []byte) bool {
	v, err := fastjson.ParseBytes(event)
	if err != nil || !v.Exists("parentId") || !v.Exists("id") || !v.Exists("timestamp") {
		return false
	}
	switch str(v, "type") {
	case "message":
		return str(v.Get("message"), "role") != ""
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

func str(v *fastjson.Value, key string) string {
	if v == nil {
		return ""
	}
	return string(v.GetStringBytes(key))
}
