package pi

import (
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// diskDecoder reads session files: the messages of the stream, each in an entry with a time. There
// is no final event, and an answer that failed is followed directly by the next attempt.
type diskDecoder struct {
	*decoder
	entries jsontape.Parser
}

// Decode implements session.Decoder.
func (d *diskDecoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, ok := d.entries.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at}
	kind := v.TextOf("type")
	if kind == "message" {
		d.entry(v, o, to)
		return
	}
	o.NativeMs = entered(v)
	switch kind {
	case "session":
		to.Identify(session.Identity{SessionID: v.TextOf("id"), Cwd: v.TextOf("cwd")})
	case "model_change":
		to.Identify(session.Identity{Model: v.TextOf("modelId")})
	case "compaction", "branch_summary":
		d.giveUp(to)
		to.SystemPrompt(o, "disk", "compaction", v.TextOf("summary"))
	case "custom_message":
		to.SystemPrompt(o, "disk", v.TextOf("customType"), seen(v.Get("content"), to))
	case "thinking_level_change", "custom", "label", "session_info":
	default:
		to.Unknown()
	}
}

// entered is when an entry was written.
func entered(entry jsontape.Value) int64 { return session.ParseTime(entry.TextOf("timestamp")) }

// entry reports a message, which has its own time. The entry after a failed answer shows whether it
// was retried.
func (d *diskDecoder) entry(entry jsontape.Value, o session.Origin, to *session.Fold) {
	message := entry.Get("message")
	answered := message.TextOf("role") == "assistant"
	if answered && d.failed != nil {
		d.failed.info.Kind = session.ErrorRetry
		to.Reopen()
	}
	d.message(message, o, to)
	if answered && d.last.stopReason != "toolUse" && d.last.stopReason != "" {
		o.NativeMs = entered(entry)
		d.ended(message, o, to) // the nearest thing to a final event that the file has
	}
}
