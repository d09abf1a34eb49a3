package query

import (
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
)

// Cursor shows one entry during a pass: it is cheap to inspect, and decoded in full only when Entry
// is called. It is valid during the visit only.
type Cursor struct {
	Index int
	Role  Role
	Line  int64

	ev    *scan.Event
	lane  *laneState
	part  int    // which content block a tool result is
	entry *Entry // set where the entry was not built from an event of the stream dialect, or was decoded already
	match bool   // the result of a filter that ran with the scan

	redactor Redactor
}

// Lane returns the source of the envelope, nil for a bare event.
func (e *Cursor) Lane() *string {
	if e.entry != nil {
		return e.entry.Lane
	}
	return e.lane.source()
}

// IsError reports whether the entry is a tool result that failed.
func (e *Cursor) IsError() bool {
	if e.Role != RoleToolResult {
		return false
	}
	if e.entry != nil {
		return e.entry.IsError
	}
	return e.ev.Parts[e.part].IsError
}

// Tools calls visit with the name of every tool that an assistant entry uses.
func (e *Cursor) Tools(visit func(name string)) {
	if e.Role != RoleAssistant {
		return
	}
	if e.entry != nil {
		for i := range e.entry.Content {
			if e.entry.Content[i].Type == BlockToolUse {
				visit(e.entry.Content[i].Name)
			}
		}
		return
	}
	for i := range e.ev.Parts {
		if p := &e.ev.Parts[i]; p.Type == scan.ToolUse {
			visit(unescape(p.Name))
		}
	}
}

// uses reports whether an assistant entry uses a tool.
func (e *Cursor) uses(tool string) bool {
	found := false
	e.Tools(func(name string) { found = found || name == tool })
	return found
}

// usesAny reports whether an assistant entry uses any tool.
func (e *Cursor) usesAny() bool {
	found := false
	e.Tools(func(string) { found = true })
	return found
}

// Usage returns the usage of an assistant entry and the message it belongs to.
func (e *Cursor) Usage() (id *string, usage session.TokenUsage, ok bool) {
	switch {
	case e.Role != RoleAssistant:
	case e.entry != nil && e.entry.Usage != nil:
		return e.entry.MessageID, *e.entry.Usage, true
	case e.entry == nil && e.ev.Usage:
		return e.messageID(), e.ev.Tokens, true
	}
	return nil, session.TokenUsage{}, false
}

func (e *Cursor) messageID() *string {
	if e.ev.MessageID == nil {
		return nil
	}
	return new(unescape(e.ev.MessageID))
}

// callIDs calls visit with the ids of the tool calls of an entry.
func (e *Cursor) callIDs(visit func(id string)) {
	if e.entry != nil {
		for _, b := range e.entry.Content {
			if b.Type == BlockToolUse && textOf(b.ToolUseID) != "" {
				visit(*b.ToolUseID)
			}
		}
		return
	}
	for i := range e.ev.Parts {
		if p := &e.ev.Parts[i]; p.Type == scan.ToolUse && len(p.ID) > 0 {
			visit(unescape(p.ID))
		}
	}
}

// resultID returns the id of the call that a tool result belongs to.
func (e *Cursor) resultID() string {
	if e.entry != nil {
		return textOf(e.entry.ToolUseID)
	}
	return unescape(e.ev.Parts[e.part].ID)
}

// inLane makes the id of a call unique; see laneKey.
func (e *Cursor) inLane(id string) string {
	if e.entry != nil {
		return laneKey(e.entry.Lane, id)
	}
	return laneKey(e.lane.source(), id)
}

// laneKey makes the id of a call unique: some models number their calls, so that those of several
// participants have the same ids.
func laneKey(lane *string, id string) string { return LaneName(lane) + "\x00" + id }

// Entry decodes the entry. The result may be kept.
func (e *Cursor) Entry() *Entry {
	if e.entry == nil {
		e.entry = e.decode().redact(e.redactor)
	}
	return e.entry
}

func (e *Cursor) decode() *Entry {
	t := &Entry{
		Index:       e.Index,
		Role:        e.Role,
		Lane:        e.lane.source(),
		Line:        e.Line,
		Parent:      unescape(e.ev.Parent),
		TimestampMs: e.time(),
	}
	switch e.Role {
	case RoleSystem:
		t.Subtype = optional(e.ev.Subtype)
		t.Data = jsonenc.Without(e.ev.Native, "type")
	case RoleAssistant:
		t.MessageID = e.messageID()
		if e.ev.Usage {
			t.Usage = new(e.ev.Tokens)
		}
		t.Content = e.blocks(func(p *scan.Part) bool { return p.Type != scan.Broken })
	case RoleUser:
		t.Content = e.blocks(func(p *scan.Part) bool { return p.Type == scan.Text })
	case RoleToolResult:
		p := &e.ev.Parts[e.part]
		t.ToolUseID, t.IsError, t.Result = optional(p.ID), p.IsError, resultText(p.Content)
		if t.IsError && t.Result != nil {
			t.ExitCode = session.ExitCode(*t.Result)
		}
	}
	return t
}

// time returns the event's own time, else that of its arrival.
func (e *Cursor) time() int64 {
	if own := session.ParseTime(string(e.ev.Stamp)); own != 0 {
		return own
	}
	return e.ev.Ts
}

func (e *Cursor) blocks(want func(*scan.Part) bool) []Block {
	blocks := make([]Block, 0, len(e.ev.Parts))
	for i := range e.ev.Parts {
		if p := &e.ev.Parts[i]; want(p) {
			blocks = append(blocks, block(p))
		}
	}
	return blocks
}

func block(p *scan.Part) Block {
	switch p.Type {
	case scan.Text:
		return Block{Type: BlockText, Text: unescape(p.Text)}
	case scan.Thinking:
		return Block{Type: BlockThinking, Text: unescape(p.Text), Raw: jsonenc.Compact(p.Raw)}
	case scan.ToolUse:
		b := Block{Type: BlockToolUse, ToolUseID: optional(p.ID), Name: unescape(p.Name)}
		if p.Input != nil {
			b.Input = jsonenc.Compact(p.Input)
		}
		return b
	case scan.OtherPart, scan.ToolResult, scan.Broken:
	}
	var parser jsontape.Parser
	v, _ := parser.Parse(p.Raw)
	return Block{Type: unescape(v.Get("type").Inner()), Raw: jsonenc.Compact(p.Raw)}
}

// resultText returns the content of a tool result: a string as it is, anything else as compact
// JSON.
func resultText(content []byte) *string {
	if content == nil {
		return nil
	}
	text, ok := jsonenc.Text(content)
	if !ok {
		text = string(jsonenc.Compact(content))
	}
	return &text
}
