package redact

import "bytes"

const (
	// moveFrom is the length from which the beginning of a secret is moved into
	// the next piece; shorter ones end too many ordinary pieces.
	moveFrom = 4
	// moveLimit is the most that is moved.
	moveLimit = 64 << 10
)

// message follows the pieces of one streamed message.
type message struct {
	owner string
	// shown is the end of what was given out, up to three characters that may
	// begin a secret; moved is what was not given out yet.
	shown, moved []byte
	// dropping is set after a find was given out that may continue.
	dropping *byteSet
}

func (m *message) idle() bool {
	return len(m.shown) == 0 && len(m.moved) == 0 && m.dropping == nil
}

// push adds a piece and returns what to write in its place.
func (m *message) push(x *index, piece string) string {
	if m.dropping != nil {
		end := m.dropping.run([]byte(piece), 0, len(piece))
		if end == len(piece) {
			return ""
		}
		piece, m.dropping = piece[end:], nil
	}
	if piece == "" && len(m.moved) == 0 {
		return piece
	}
	text := make([]byte, 0, len(m.shown)+len(m.moved)+len(piece))
	text = append(append(append(text, m.shown...), m.moved...), piece...)
	begin := len(m.shown)
	spans := x.union(x.keepPlaceholders(text, x.find(text)))
	open := x.openEnd(text, spans)
	if len(text)-open > moveLimit {
		open = len(text)
	}
	if len(spans) > 0 && open == len(text) {
		if last := spans[len(spans)-1]; last.end == len(text) && last.label >= x.envLabels {
			m.dropping = base64Char
		}
	}
	end := len(text)
	m.shown, m.moved = text[open:], nil
	if end-open >= moveFrom {
		end = max(open, begin)
		m.shown, m.moved = text[min(open, end):end], text[end:]
	}
	return x.render(text, spans, begin, end)
}

// render writes out part of a text with placeholders for the finds that reach
// into it.
func (x *index) render(text []byte, spans []span, begin, end int) string {
	if len(spans) == 0 {
		return string(text[begin:end])
	}
	var out bytes.Buffer
	at := begin
	for _, s := range spans {
		if s.end <= at || s.start >= end {
			continue
		}
		out.Write(text[at:max(at, s.start)])
		out.WriteString(x.labels[s.label])
		at = min(end, s.end)
	}
	out.Write(text[at:end])
	return out.String()
}

// openEnd returns the first place from which the end of a text may be the
// beginning of a secret, or the length of the text. A find is never divided.
func (x *index) openEnd(text []byte, spans []span) int {
	complete := len(text) // where a find begins that reaches the end
	if n := len(spans); n > 0 && spans[n-1].end == len(text) {
		complete = spans[n-1].start
	}
	open := len(text)
	layers := []*layer{{text: text}}
	if bytes.ContainsAny(text, `\%+`) {
		layers = x.layersOf(text)
	}
	for _, l := range layers {
		end := len(l.text) - unfinishedEscape(l.text)
		at, _ := x.openForm(l.text[:end])
		if shape := openShape(l.text[:end]); shape < at {
			if from, _ := l.back(shape, shape+1); from < complete || isKeyBlock(l.text[shape:]) {
				at = shape
			}
		}
		if at < len(l.text) {
			from, _ := l.back(at, at+1)
			open = min(open, from)
		}
	}
	for _, s := range spans {
		if s.start < open && open < s.end {
			open = s.start
		}
	}
	return open
}

// openForm returns the first place from which the text is the beginning of a
// form, and the number of the form; the length of the text if there is none.
func (x *index) openForm(text []byte) (at, number int) {
	for at = max(0, len(text)-x.longest); at < len(text); at++ {
		for _, number := range x.begin[text[at]] {
			if x.forms[number].isBegunBy(text[at:]) {
				return at, number
			}
		}
	}
	return len(text), -1
}

// isBegunBy reports whether a text is the beginning of the form, and not all of it.
func (f *form) isBegunBy(text []byte) bool {
	if len(text) >= len(f.whole) {
		return false
	}
	for i, c := range text {
		if !f.same(c, f.whole[i]) {
			return false
		}
	}
	return true
}

// openShape returns the first place from which the text may become a credential
// shape, or its length.
func openShape(text []byte) int {
	for at, c := range text {
		for _, p := range shapesBy[c] {
			if p.shape.isOpen(text, at, p.prefix) {
				return at
			}
		}
	}
	return len(text)
}

// shapesBy are the prefixes of all shapes by their first character.
var shapesBy = func() (by [256][]shapePrefix) {
	for n := range shapes {
		for _, prefix := range shapes[n].prefixes {
			by[prefix[0]] = append(by[prefix[0]], shapePrefix{&shapes[n], prefix})
		}
	}
	return by
}()

type shapePrefix struct {
	shape  *shape
	prefix string
}

func (s *shape) isOpen(text []byte, at int, prefix string) bool {
	rest := text[at:]
	if s.bounded && wordBefore(text, at) {
		return false
	}
	if len(rest) < len(prefix) {
		return prefix[:len(rest)] == string(rest)
	}
	if string(rest[:len(prefix)]) != prefix {
		return false
	}
	if s.open != nil {
		return s.open(rest)
	}
	body := len(rest) - len(prefix)
	return body <= s.max && s.body.run(rest, len(prefix), endless) == len(rest)
}

func isKeyBlock(text []byte) bool { return bytes.HasPrefix(text, []byte(keyBegin)) }

// withoutOpenEnd takes the beginning of a secret off the end of a text that is
// not continued, but may be a message so far.
func (x *index) withoutOpenEnd(s string) string {
	text := []byte(s)
	at, number := x.openForm(text)
	if number < 0 {
		return s
	}
	tail := len(text) - at
	if tail < moveFrom || tail < min(2*moveFrom, (len(x.forms[number].text)+1)/2) {
		return s
	}
	return s[:at] + x.labels[x.forms[number].label]
}
