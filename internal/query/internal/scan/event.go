package scan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// Kind is the kind of a line for readers of traces.
type Kind uint8

// The kinds of lines.
const (
	Other     Kind = iota // an event that makes no record, or one of another dialect
	System                // makes one record
	Assistant             // makes one record
	User                  // makes a record for its text and one for every tool result
	Result                // closes an invocation of an agent
	Lifecycle             // of the orchestrator
)

// PartType is the type of a content block.
type PartType uint8

// The types of content blocks.
const (
	OtherPart PartType = iota
	Text
	Thinking
	ToolUse
	ToolResult
	Broken // not an object: null, a number, a string
)

// Part is one content block of a message.
type Part struct {
	Type    PartType
	IsError bool
	Raw     []byte // the whole block
	Text    []byte // of text and thinking blocks
	ID      []byte // of a call, or of the call that a result belongs to
	Name    []byte // of the tool
	Input   []byte // the whole value
	Content []byte // of a result, the whole value
}

// Event is one line that was understood. Its bytes are in the block that it was read from; strings
// are the text between their quotes, with escapes, and nil if there is none.
type Event struct {
	Kind   Kind
	Bare   bool // there is no envelope
	Usage  bool // the message reports its Tokens
	Keep   bool // what the Filter said
	Lane   string
	Seq    int64
	Ts     int64
	Line   int64 // counted from 1; of the block until a Batch is consumed
	Offset int64 // of the line in the stream
	Raw    []byte
	Native []byte // the native event; nil if the envelope holds none

	Type, Subtype, MessageID, Parent, Stamp []byte

	Tokens session.TokenUsage
	Parts  []Part
}

// HasText reports whether a message holds a text block.
func (ev *Event) HasText() bool {
	for i := range ev.Parts {
		if ev.Parts[i].Type == Text {
			return true
		}
	}
	return false
}

// LineScanner parses lines. It is for one goroutine and reuses its memory.
type LineScanner struct {
	parser jsontape.Parser
	lanes  map[string]string // so that a lane's name is allocated once and not per line
}

// Scan parses one line. The parts of the event are appended to arena. It reports false for a line
// that is not a JSON object.
func (s *LineScanner) Scan(line []byte, ev *Event, arena *[]Part) bool {
	*ev = Event{Raw: line, Line: ev.Line, Offset: ev.Offset}
	v, ok := s.parser.Parse(line)
	if !ok || v.Kind() != jsontape.Object || hasControl(line) && !json.Valid(line) {
		return false
	}
	native := v
	if event, source := v.Get("event"), v.Get("source"); source.Kind() == jsontape.String && truthy(event) &&
		!truthy(v.Get("type")) {
		ev.Lane, ev.Seq, ev.Ts = s.lane(source.Inner()), v.Get("seq").Int64(), v.Get("ts").Int64()
		if event.Kind() != jsontape.Object {
			return true // an envelope of a scalar holds nothing
		}
		native = event
	} else {
		ev.Bare = true
	}
	ev.Native = native.Raw()
	ev.describe(native, arena)
	return true
}

// truthy reports whether a value counts as present: everything but null, false, zero and the empty
// string.
func truthy(v jsontape.Value) bool {
	switch v.Kind() {
	case jsontape.Missing, jsontape.Null, jsontape.False:
		return false
	case jsontape.String:
		return len(v.Inner()) > 0
	case jsontape.Number:
		return v.Float64() != 0
	case jsontape.True, jsontape.Object, jsontape.Array:
	}
	return true
}

func (s *LineScanner) lane(raw []byte) string {
	if name, ok := s.lanes[string(raw)]; ok {
		return name
	}
	name := jsontape.Unescape(raw)
	if s.lanes == nil {
		s.lanes = map[string]string{}
	}
	if len(s.lanes) < 4096 { // lanes that a hostile file invents by the thousand are not worth remembering
		s.lanes[string(raw)] = name
	}
	return name
}

func (ev *Event) describe(v jsontape.Value, arena *[]Part) {
	ev.Type, ev.Subtype = v.Get("type").Inner(), v.Get("subtype").Inner()
	ev.Parent, ev.Stamp = v.Get("parent_tool_use_id").Inner(), v.Get("timestamp").Inner()
	ev.Kind = kindOf(ev.Type, ev.Lane)
	if ev.Kind != Assistant && ev.Kind != User {
		return
	}
	message := v.Get("message")
	if ev.Kind == Assistant && !truthy(message) {
		ev.Kind = Other
		return
	}
	ev.MessageID = message.Get("id").Inner()
	if usage := message.Get("usage"); usage.Kind() == jsontape.Object {
		ev.Usage = true
		ev.Tokens = session.TokenUsage{
			InputTokens:      usage.Get("input_tokens").Int64(),
			OutputTokens:     usage.Get("output_tokens").Int64(),
			CacheReadTokens:  usage.Get("cache_read_input_tokens").Int64(),
			CacheWriteTokens: usage.Get("cache_creation_input_tokens").Int64(),
		}
	}
	from := len(*arena)
	content := message.Get("content")
	if content.Kind() == jsontape.String { // the same as one text block
		*arena = append(*arena, Part{Type: Text, Text: content.Inner(), Raw: content.Raw()})
	}
	for block := range content.Elements() {
		*arena = append(*arena, part(block))
	}
	ev.Parts = (*arena)[from:len(*arena):len(*arena)]
}

func kindOf(typ []byte, lane string) Kind {
	switch string(typ) {
	case "system":
		return System
	case "assistant":
		return Assistant
	case "user":
		return User
	case "result":
		return Result
	}
	if lane == trace.Orchestrator {
		return Lifecycle
	}
	return Other
}

func part(block jsontape.Value) Part {
	p := Part{Raw: block.Raw()}
	if block.Kind() != jsontape.Object {
		p.Type = Broken
		return p
	}
	switch string(block.Get("type").Inner()) {
	case "text":
		p.Type, p.Text = Text, block.Get("text").Inner()
	case "thinking":
		p.Type, p.Text = Thinking, block.Get("thinking").Inner()
	case "tool_use":
		p.Type, p.ID, p.Name = ToolUse, block.Get("id").Inner(), block.Get("name").Inner()
		p.Input = block.Get("input").Raw()
	case "tool_result":
		p.Type, p.ID = ToolResult, block.Get("tool_use_id").Inner()
		p.IsError, p.Content = block.Get("is_error").Bool(), block.Get("content").Raw()
	}
	return p
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// hasControl reports whether a line contains a control character, which hardly any JSON does.
func hasControl(line []byte) bool {
	var found uint64
	for len(line) >= 32 {
		a, b := binary.LittleEndian.Uint64(line), binary.LittleEndian.Uint64(line[8:])
		c, d := binary.LittleEndian.Uint64(line[16:]), binary.LittleEndian.Uint64(line[24:])
		found |= (a-0x20*lowBits)&^a | (b-0x20*lowBits)&^b | (c-0x20*lowBits)&^c | (d-0x20*lowBits)&^d
		line = line[32:]
	}
	return found&highBits != 0 || bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' })
}
