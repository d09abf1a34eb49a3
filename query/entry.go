package query

import "encoding/json"

// Entry is one turn as it passes by: cheap to look at, and decoded in full only when Turn is
// called. It is valid during the visit only.
type Entry struct {
	Index int
	Role  Role
	Line  int64

	ev   *event
	data []byte
	lane *string // outlives the visit
	base int64   // the offset of data in the file
	part int     // which content block a tool result is
	turn *Turn   // set where the turn was not built from an event of the stream dialect, or was decoded already
	hit  bool    // what a filter that ran with the scan said
}

// Lane is the source of the envelope, nil for a bare event.
func (e *Entry) Lane() *string {
	if e.turn != nil {
		return e.turn.Lane
	}
	return e.lane
}

// IsError reports whether the turn is a tool result that failed.
func (e *Entry) IsError() bool {
	if e.Role != RoleToolResult {
		return false
	}
	if e.turn != nil {
		return e.turn.IsError
	}
	return e.ev.parts[e.part].isError
}

// Tools calls visit with the name of every tool that an assistant turn uses.
func (e *Entry) Tools(visit func(name string)) {
	if e.Role != RoleAssistant {
		return
	}
	if e.turn != nil {
		for i := range e.turn.Content {
			if e.turn.Content[i].Type == BlockToolUse {
				visit(e.turn.Content[i].Name)
			}
		}
		return
	}
	for i := range e.ev.parts {
		if p := &e.ev.parts[i]; p.typ == blockToolUse {
			visit(unescape(p.name.of(e.data)))
		}
	}
}

// Uses reports whether an assistant turn uses a tool.
func (e *Entry) Uses(tool string) bool {
	found := false
	e.Tools(func(name string) { found = found || name == tool })
	return found
}

// Usage is the usage of an assistant turn and the message it belongs to.
func (e *Entry) Usage() (id *string, usage Tokens, ok bool) {
	if e.Role != RoleAssistant {
		return nil, Tokens{}, false
	}
	if e.turn != nil {
		if e.turn.Usage == nil {
			return nil, Tokens{}, false
		}
		return e.turn.MessageID, *e.turn.Usage, true
	}
	if !e.ev.hasUsage {
		return nil, Tokens{}, false
	}
	return e.messageID(), e.ev.usage, true
}

func (e *Entry) messageID() *string {
	if !e.ev.hasMsgID {
		return nil
	}
	id := unescape(e.ev.msgID.of(e.data))
	return &id
}

// Turn decodes the turn. The result may be kept.
func (e *Entry) Turn() *Turn {
	if e.turn == nil {
		e.turn = e.decode()
	}
	return e.turn
}

func (e *Entry) decode() *Turn {
	t := &Turn{
		Index:       e.Index,
		Role:        e.Role,
		Lane:        e.lane,
		Line:        e.Line,
		Parent:      unescape(e.ev.parent.of(e.data)),
		TimestampMs: e.ev.time(e.data),
	}
	switch e.Role {
	case RoleSystem:
		if !e.ev.subtype.empty() {
			subtype := unescape(e.ev.subtype.of(e.data))
			t.Subtype = &subtype
		}
		t.Data = withoutMember(e.ev.event.of(e.data), "type")
	case RoleAssistant:
		t.MessageID = e.messageID()
		if e.ev.hasUsage {
			usage := e.ev.usage
			t.Usage = &usage
		}
		t.Content = e.blocks(func(p *part) bool { return p.typ != blockBroken })
	case RoleUser:
		t.Content = e.blocks(func(p *part) bool { return p.typ == blockText })
	case RoleToolResult:
		e.result(t, &e.ev.parts[e.part])
	}
	return t
}

// time is the event's own time, else that of its arrival.
func (ev *event) time(data []byte) int64 {
	if own := parseStamp(string(ev.stamp.of(data))); own != 0 {
		return own
	}
	return ev.ts
}

func (e *Entry) blocks(want func(*part) bool) []Block {
	blocks := make([]Block, 0, len(e.ev.parts))
	for i := range e.ev.parts {
		if p := &e.ev.parts[i]; want(p) {
			blocks = append(blocks, e.block(p))
		}
	}
	return blocks
}

func (e *Entry) block(p *part) Block {
	switch p.typ {
	case blockText:
		return Block{Type: BlockText, Text: unescape(p.text.of(e.data))}
	case blockThinking:
		return Block{Type: BlockThinking, Text: unescape(p.text.of(e.data)), Raw: cloneRaw(p.raw.of(e.data))}
	case blockToolUse:
		b := Block{Type: BlockToolUse, ToolUseID: optional(p.id.of(e.data)), Name: unescape(p.name.of(e.data))}
		if !p.input.empty() {
			b.Input = cloneRaw(p.input.of(e.data))
		}
		return b
	}
	return Block{Type: memberText(p.raw.of(e.data), "type"), Raw: cloneRaw(p.raw.of(e.data))}
}

func (e *Entry) result(t *Turn, p *part) {
	t.ToolUseID, t.IsError = optional(p.id.of(e.data)), p.isError
	if p.content.empty() {
		return
	}
	raw := p.content.of(e.data)
	var text string
	if p.contentKind == '"' {
		text = unescape(raw[1 : len(raw)-1])
	} else {
		text = string(compact(raw))
	}
	t.Result = &text
}

// optional is the text of a string, nil for one that is empty or missing.
func optional(raw []byte) *string {
	if len(raw) == 0 {
		return nil
	}
	text := unescape(raw)
	return &text
}

// cloneRaw copies a value. The scanner is lenient about escapes inside long strings, so that a
// value may turn out to be no JSON after all; it is kept as a string then, because nothing that is
// printed may be broken by what an agent wrote.
func cloneRaw(raw []byte) json.RawMessage {
	if !validJSON(raw) {
		return appendString(nil, string(raw))
	}
	return append(json.RawMessage(nil), raw...)
}

// withoutMember copies an object without one of its members.
func withoutMember(object []byte, name string) json.RawMessage {
	s := scanner{b: object}
	out := append(json.RawMessage(nil), '{')
	s.space()
	s.object(func(key span, _ bool) bool {
		start := int(key.start) - 1
		_, ok := s.value()
		if unescape(key.of(object)) != name {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, object[start:s.i]...)
		}
		return ok
	})
	if out = append(out, '}'); !validJSON(out) {
		return appendString(nil, string(object))
	}
	return out
}

// memberText is the text of an object's string member, empty if there is none.
func memberText(object []byte, name string) string {
	raw := memberOf(object, name)
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return unescape(raw[1 : len(raw)-1])
}

// memberOf is the value of an object's member, nil if there is none; the last of two equal ones
// counts.
func memberOf(object []byte, name string) []byte {
	s := scanner{b: object}
	var found []byte
	s.space()
	s.object(func(key span, _ bool) bool {
		value, ok := s.value()
		if ok && unescape(key.of(object)) == name {
			found = value.of(object)
		}
		return ok
	})
	return found
}

// usesAny reports whether an assistant turn uses any tool.
func (e *Entry) usesAny() bool {
	found := false
	e.Tools(func(string) { found = true })
	return found
}
