package query

import (
	"bytes"
	"strconv"

	"github.com/fit-eval/fit/trace"
)

// kind is what a line is to a reader of traces.
type kind uint8

const (
	kindOther     kind = iota // an event that makes no turn, or one of another dialect
	kindSystem                // makes one turn
	kindAssistant             // makes one turn
	kindUser                  // makes a turn for its text and one for every tool result
	kindResult                // closes an invocation of an agent
	kindLifecycle             // of the orchestrator
)

// blockType is what a content block is.
type blockType uint8

const (
	blockOther blockType = iota
	blockText
	blockThinking
	blockToolUse
	blockToolResult
	blockBroken // not an object: null, a number, a string
)

// part is one content block of a message: where its pieces lie in the block of lines.
type part struct {
	typ     blockType
	isError bool
	hasText bool
	// contentKind is the first byte of the content: a quote for a string, 0 if there is none.
	contentKind byte
	raw         span
	text        span // of text and thinking blocks
	id          span // of a call, or of the call that a result belongs to
	name        span
	input       span
	content     span // the whole value, quotes included
}

// event is one line that was understood. Its spans lie in the data of its block.
type event struct {
	kind     kind
	bare     bool
	hasUsage bool
	hasMsgID bool
	lane     string
	seq, ts  int64
	line     int32 // within its block, counted from 0
	start    int32 // of the line
	end      int32
	event    span // the native event
	typ      span
	subtype  span
	msgID    span
	parent   span
	stamp    span // the event's own timestamp
	usage    Tokens
	parts    []part
	// keep is the answer of a filter that ran with the scan.
	keep bool
}

// fields are the members of an object that matter, of an envelope and of an event alike.
type fields struct {
	typ, subtype, source, parent, stamp, event, msgID span

	hasSource, hasType, hasEvent, hasMessage, hasMsgID, hasUsage bool

	seq, ts int64
	usage   Tokens
	parts   []part
}

// lineScanner scans lines. It is used by one worker and reuses its memory from line to line.
type lineScanner struct {
	scanner
	outer, inner fields
	lanes        map[string]string // so that a lane's name is allocated once and not per line
	spare        [2][]part
}

func newLineScanner() *lineScanner { return &lineScanner{lanes: map[string]string{}} }

// scan takes one line apart. The parts of the event are appended to arena. It reports false for a
// line that is no JSON object.
func (s *lineScanner) scan(data []byte, start, end int, ev *event, arena *[]part) bool {
	line := data[start:end]
	s.scanner = scanner{b: line, lenient: !hasControl(line)}
	s.outer = fields{parts: s.spare[0][:0]}
	s.space()
	if !s.at('{') || !s.walk(&s.outer, true) {
		return false
	}
	s.spare[0] = s.outer.parts[:0]
	s.space()
	if s.more() {
		return false
	}
	*ev = event{start: int32(start), end: int32(end), line: ev.line}
	f := &s.outer
	if enveloped := f.hasEvent && !f.hasType && f.hasSource; enveloped {
		if line[f.event.start] != '{' {
			return true // an envelope of a scalar holds nothing
		}
		ev.lane, ev.seq, ev.ts, ev.event = s.lane(f.source.of(line)), f.seq, f.ts, f.event
		f = &s.inner
	} else {
		ev.bare, ev.event = true, spanOf(0, len(line))
	}
	s.describe(ev, f, arena)
	by := int32(start)
	for _, at := range []*span{&ev.event, &ev.typ, &ev.subtype, &ev.msgID, &ev.parent, &ev.stamp} {
		*at = at.shift(by)
	}
	for i := range ev.parts {
		ev.parts[i].shift(by)
	}
	return true
}

func (p *part) shift(by int32) {
	p.raw, p.text, p.id = p.raw.shift(by), p.text.shift(by), p.id.shift(by)
	p.name, p.input, p.content = p.name.shift(by), p.input.shift(by), p.content.shift(by)
}

func (s *lineScanner) lane(raw []byte) string {
	if name, ok := s.lanes[string(raw)]; ok {
		return name
	}
	name := unescape(raw)
	if len(s.lanes) < 4096 { // lanes that a hostile file invents by the thousand are not worth remembering
		s.lanes[string(raw)] = name
	}
	return name
}

func (s *lineScanner) describe(ev *event, f *fields, arena *[]part) {
	ev.typ, ev.subtype, ev.parent, ev.stamp, ev.msgID = f.typ, f.subtype, f.parent, f.stamp, f.msgID
	ev.hasMsgID, ev.hasUsage, ev.usage = f.hasMsgID, f.hasUsage, f.usage
	ev.kind = kindOf(f.typ.of(s.b), ev.lane)
	if ev.kind == kindAssistant && !f.hasMessage {
		ev.kind = kindOther
	}
	if ev.kind != kindAssistant && ev.kind != kindUser {
		return
	}
	from := len(*arena)
	*arena = append(*arena, f.parts...)
	ev.parts = (*arena)[from:len(*arena):len(*arena)]
}

func kindOf(typ []byte, lane string) kind {
	switch string(typ) {
	case "system":
		return kindSystem
	case "assistant":
		return kindAssistant
	case "user":
		return kindUser
	case "result":
		return kindResult
	}
	if lane == trace.Orchestrator {
		return kindLifecycle
	}
	return kindOther
}

// walk reads an object into f. At the top it looks into the event of an envelope too.
func (s *lineScanner) walk(f *fields, top bool) bool {
	return s.object(func(key span, escaped bool) bool {
		name := key.of(s.b)
		if escaped {
			name = []byte(unescape(name))
		}
		switch string(name) {
		case "type":
			return s.presence(&f.typ, &f.hasType)
		case "subtype":
			return s.textField(&f.subtype)
		case "source":
			f.hasSource = s.at('"')
			return s.textField(&f.source)
		case "seq":
			return s.intField(&f.seq)
		case "ts":
			return s.intField(&f.ts)
		case "timestamp":
			return s.textField(&f.stamp)
		case "parent_tool_use_id":
			return s.textField(&f.parent)
		case "message":
			return s.message(f)
		case "event":
			return s.eventField(f, top)
		}
		return s.skip()
	})
}

func (s *lineScanner) eventField(f *fields, top bool) bool {
	start := s.i
	if top && s.at('{') {
		s.inner = fields{parts: s.spare[1][:0]}
		if !s.walk(&s.inner, false) {
			return false
		}
		s.spare[1] = s.inner.parts[:0]
	} else if !s.skip() {
		return false
	}
	f.event = s.from(start)
	f.hasEvent = truthy(f.event.of(s.b))
	return true
}

// textField reads a value and keeps it if it is a string.
func (s *lineScanner) textField(to *span) (ok bool) {
	*to = span{}
	if s.at('"') {
		*to, _, ok = s.str()
		return ok
	}
	return s.skip()
}

// presence is textField that also tells whether the value is truthy.
func (s *lineScanner) presence(to *span, present *bool) bool {
	start := s.i
	ok := s.textField(to)
	*present = ok && truthy(s.b[start:s.i])
	return ok
}

func (s *lineScanner) intField(to *int64) bool {
	value, ok := s.value()
	*to = parseInt(value.of(s.b))
	return ok
}

// parseInt reads a count. What is no number counts as 0; fractions are cut off.
func parseInt(raw []byte) int64 {
	if len(raw) == 0 || len(raw) > 32 || raw[0] != '-' && !isDigit(raw[0]) {
		return 0
	}
	var n int64
	for i, c := range raw {
		if !isDigit(c) || i >= 18 {
			f, _ := strconv.ParseFloat(string(raw), 64)
			return int64(max(-1<<62, min(1<<62, f)))
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// hasUserText reports whether a user event holds something that a user said.
func (ev *event) hasUserText() bool {
	for i := range ev.parts {
		if ev.parts[i].typ == blockText {
			return true
		}
	}
	return false
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// blank reports whether a line holds nothing but space.
func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
