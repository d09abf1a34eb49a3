package query

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/session"
)

// Role says whose entry it is.
type Role string

// The roles of entries.
const (
	RoleSystem     Role = "system"
	RoleAssistant  Role = "assistant"
	RoleUser       Role = "user"
	RoleToolResult Role = "tool_result"
)

// Known reports whether entries can have the role.
func (r Role) Known() bool {
	return r == RoleSystem || r == RoleAssistant || r == RoleUser || r == RoleToolResult
}

// Entry is one rendered record of a trace. Which fields are set depends on its role.
type Entry struct {
	Index int
	Role  Role
	// Lane is the source of the envelope; nil for bare events.
	Lane *string
	// TimestampMs is when it happened in epoch milliseconds: by the agent's clock, else when the
	// line arrived; 0 if neither is known.
	TimestampMs int64
	// Parent is the id of the tool call that started the sub-agent this entry belongs to.
	Parent string
	Line   int64 // of the file, counted from 1

	// Of system entries.
	Subtype *string
	Data    json.RawMessage // the event without its type

	// Of assistant entries; user entries have the content only.
	MessageID *string
	Content   []Block
	Usage     *session.TokenUsage

	// Of tool results.
	ToolUseID *string
	// Result is the content: a string as it is, anything else as compact JSON; nil if there was
	// none.
	Result  *string
	IsError bool
	// ExitCode is that of a command; nil if the agent does not say.
	ExitCode *int

	// verbatim is the entry as a structured document has it; it is printed unchanged.
	verbatim json.RawMessage
}

// Block is one content block of a message.
type Block struct {
	Type string
	// Text is what was said in text blocks and thought in thinking blocks.
	Text string
	// The rest belongs to tool_use blocks.
	ToolUseID *string
	Name      string
	Input     json.RawMessage // nil if there is none
	// Canonical, Command and Paths are what the dialect of a lane says about a call; they are empty
	// for the stream dialect, whose tools have known names.
	Canonical string
	Command   string
	Paths     []string
	// Raw is the whole block, for the types that are kept as they are.
	Raw json.RawMessage
}

// The types of blocks that are taken apart.
const (
	BlockText     = "text"
	BlockThinking = "thinking"
	BlockToolUse  = "tool_use"
)

// Text joins the text blocks of an entry.
func (t *Entry) Text(separator string) string {
	text, first := "", true
	for _, b := range t.Content {
		if b.Type != BlockText {
			continue
		}
		if !first {
			text += separator
		}
		text, first = text+b.Text, false
	}
	return text
}

// Has reports whether an entry has a block of a type.
func (t *Entry) Has(blockType string) bool {
	return slices.ContainsFunc(t.Content, func(b Block) bool { return b.Type == blockType })
}

// LaneName returns the lane, "agent" for bare events.
func (t *Entry) LaneName() string { return LaneName(t.Lane) }

// LaneName returns the name of the lane that a record says it came from, "agent" for none.
func LaneName(source *string) string {
	if source == nil {
		return bareLane
	}
	return *source
}

// bareLane is the lane of events without an envelope.
const bareLane = "agent"

// MarshalJSON writes the entry in the shape of a structured document. What this tool adds to that
// shape comes last and only when it is known.
func (t *Entry) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

// AppendJSON appends what MarshalJSON writes.
func (t *Entry) AppendJSON(dst []byte) []byte {
	if t == nil {
		return append(dst, "null"...)
	}
	if t.verbatim != nil {
		return append(dst, t.verbatim...)
	}
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(t.Index), 10)
	dst = appendField(dst, "role", string(t.Role))
	dst = appendOptional(dst, "source", t.Lane)
	switch t.Role {
	case RoleSystem:
		dst = appendOptional(dst, "subtype", t.Subtype)
		dst = appendRaw(dst, "data", t.Data)
	case RoleAssistant:
		dst = appendOptional(dst, "messageId", t.MessageID)
		dst = appendBlocks(dst, t.Content)
		dst = appendUsage(dst, t.Usage)
	case RoleUser:
		dst = appendBlocks(dst, t.Content)
	case RoleToolResult:
		dst = appendOptional(dst, "toolUseId", t.ToolUseID)
		if t.Result != nil {
			dst = appendField(dst, "content", *t.Result)
		}
		dst = append(dst, `,"isError":`...)
		dst = strconv.AppendBool(dst, t.IsError)
	}
	return append(t.appendAdditions(dst), '}')
}

func (t *Entry) appendAdditions(dst []byte) []byte {
	if t.TimestampMs != 0 {
		dst = append(dst, `,"timestampMs":`...)
		dst = strconv.AppendInt(dst, t.TimestampMs, 10)
	}
	if t.Parent != "" {
		dst = appendField(dst, "parentToolUseId", t.Parent)
	}
	return dst
}

func appendKey(dst []byte, key string) []byte {
	dst = append(dst, ',')
	dst = jsonenc.AppendString(dst, key)
	return append(dst, ':')
}

func appendField(dst []byte, key, value string) []byte {
	return jsonenc.AppendString(appendKey(dst, key), value)
}

func appendOptional(dst []byte, key string, value *string) []byte {
	if value == nil {
		return append(appendKey(dst, key), "null"...)
	}
	return appendField(dst, key, *value)
}

func appendRaw(dst []byte, key string, raw json.RawMessage) []byte {
	dst = appendKey(dst, key)
	if len(raw) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

func appendUsage(dst []byte, usage *session.TokenUsage) []byte {
	dst = appendKey(dst, "usage")
	if usage == nil {
		return append(dst, "null"...)
	}
	return append(appendCounters(append(dst, '{'), *usage), '}')
}

func appendBlocks(dst []byte, blocks []Block) []byte {
	dst = append(appendKey(dst, "content"), '[')
	for i := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = blocks[i].appendJSON(dst)
	}
	return append(dst, ']')
}

func (b *Block) appendJSON(dst []byte) []byte {
	if b.Raw != nil {
		return append(dst, b.Raw...)
	}
	dst = append(dst, `{"type":`...)
	dst = jsonenc.AppendString(dst, b.Type)
	switch b.Type {
	case BlockText:
		dst = appendField(dst, "text", b.Text)
	case BlockThinking:
		dst = appendField(dst, "thinking", b.Text)
	case BlockToolUse:
		dst = appendOptional(dst, "toolUseId", b.ToolUseID)
		dst = appendField(dst, "name", b.Name)
		if b.Input != nil {
			dst = appendRaw(dst, "input", b.Input)
		}
	}
	return append(dst, '}')
}
