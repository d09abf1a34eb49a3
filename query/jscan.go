package query

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxDepth bounds the nesting that is accepted, so that a line of brackets cannot exhaust the
// stack.
const maxDepth = 2000

// scanner walks over one JSON text and validates it on the way. It never copies and never
// allocates; a false answer of any method means that the text is no JSON, and the position is
// meaningless then.
type scanner struct {
	b     []byte
	i     int
	depth int
	// lenient leaves escapes inside long strings unchecked, which makes it several times as fast.
	// Where strings end is found exactly all the same, so that nothing inside a string can pass for
	// structure.
	lenient bool
}

// span is a piece of the scanned text. For strings it lies between the quotes and may still hold
// escapes.
type span struct{ start, end int32 }

func (s span) empty() bool          { return s.start == s.end }
func (s span) of(b []byte) []byte   { return b[s.start:s.end] }
func (s span) shift(by int32) span  { return span{s.start + by, s.end + by} }
func spanOf(start, end int) span    { return span{int32(start), int32(end)} }
func (s *scanner) more() bool       { return s.i < len(s.b) }
func (s *scanner) at(c byte) bool   { return s.i < len(s.b) && s.b[s.i] == c }
func (s *scanner) from(i int) span  { return spanOf(i, s.i) }
func isSpace(c byte) bool           { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
func isHex(c byte) bool             { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }
func isDigit(c byte) bool           { return c >= '0' && c <= '9' }
func (s *scanner) take(c byte) bool { return s.at(c) && s.advance() }

func (s *scanner) advance() bool {
	s.i++
	return true
}

func (s *scanner) space() {
	for s.i < len(s.b) && isSpace(s.b[s.i]) {
		s.i++
	}
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// stops marks the bytes of a word at which a string ends or needs a look: the high bit of a quote,
// a backslash or a control character is set. Flipping bit 1 maps the quote next to the control
// characters, so that one comparison finds both. Borrows can mark later bytes too, but never an
// earlier one: the lowest mark is right.
func stops(w uint64) uint64 {
	low := w ^ (0x02 * lowBits)
	slash := w ^ ('\\' * lowBits)
	return ((low-0x21*lowBits)&^low | (slash-lowBits)&^slash) & highBits
}

// nextStop is the position of the first quote, backslash or control character from i on, or the
// end.
func nextStop(b []byte, i int) int {
	rest := b[i:]
	for len(rest) >= 32 {
		a, b, c, d := stops(binary.LittleEndian.Uint64(rest)), stops(binary.LittleEndian.Uint64(rest[8:])),
			stops(binary.LittleEndian.Uint64(rest[16:])), stops(binary.LittleEndian.Uint64(rest[24:]))
		if a|b|c|d == 0 {
			i += 32
			rest = rest[32:]
			continue
		}
		switch {
		case a != 0:
			return i + bits.TrailingZeros64(a)>>3
		case b != 0:
			return i + 8 + bits.TrailingZeros64(b)>>3
		case c != 0:
			return i + 16 + bits.TrailingZeros64(c)>>3
		}
		return i + 24 + bits.TrailingZeros64(d)>>3
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// str reads a string whose opening quote is at the position, and returns what lies between the
// quotes. A lenient scanner reports every long string as escaped.
func (s *scanner) str() (text span, escaped, ok bool) {
	if !s.take('"') {
		return span{}, false, false
	}
	b, i := s.b, s.i
	for {
		if s.lenient && i-s.i >= shortString {
			return s.longStr(i)
		}
		stop := len(b)
		if s.lenient {
			stop = min(stop, i+shortString)
		}
		i = nextStop(b[:stop], i)
		if i >= len(b) {
			return span{}, false, false
		}
		if i == stop {
			continue
		}
		if b[i] == '"' {
			text = spanOf(s.i, i)
			s.i = i + 1
			return text, escaped, true
		}
		size := escapeSize(b[i:])
		if size == 0 {
			return span{}, false, false
		}
		escaped = true
		i += size
	}
}

// shortString is the length up to which looking at words beats the search for the next quote.
const shortString = 32

// longStr finds the end of a string by its quotes: the first one that an even number of backslashes
// precedes.
func (s *scanner) longStr(from int) (text span, escaped, ok bool) {
	for {
		n := bytes.IndexByte(s.b[from:], '"')
		if n < 0 {
			return span{}, false, false
		}
		quote := from + n
		first := quote
		for first > s.i && s.b[first-1] == '\\' {
			first--
		}
		if (quote-first)%2 == 0 {
			text = spanOf(s.i, quote)
			s.i = quote + 1
			return text, true, true
		}
		from = quote + 1
	}
}

// hasControl reports whether a text contains a control character, which no JSON on one line does.
func hasControl(text []byte) bool {
	var found uint64
	for len(text) >= 32 {
		a, b, c, d := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(
			text[8:]), binary.LittleEndian.Uint64(text[16:]), binary.LittleEndian.Uint64(text[24:])
		found |= (a-0x20*lowBits)&^a | (b-0x20*lowBits)&^b | (c-0x20*lowBits)&^c | (d-0x20*lowBits)&^d
		text = text[32:]
	}
	for _, c := range text {
		if c < 0x20 {
			return true
		}
	}
	return found&highBits != 0
}

// escapeSize is the length of the escape that b begins with, 0 if it is none.
func escapeSize(b []byte) int {
	if len(b) < 2 || b[0] != '\\' {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && isHex(b[2]) && isHex(b[3]) && isHex(b[4]) && isHex(b[5]) {
			return 6
		}
	}
	return 0
}

// number reads a number.
func (s *scanner) number() bool {
	s.take('-')
	switch {
	case s.take('0'):
	case !s.digits():
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && isDigit(s.b[s.i]) {
		s.i++
	}
	return s.i > start
}

// literal reads one of the words true, false and null.
func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// value reads any value and returns where it lies, without surrounding space.
func (s *scanner) value() (span, bool) {
	start := s.i
	ok := s.skip()
	return s.from(start), ok
}

func (s *scanner) skip() bool {
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '"':
		_, _, ok := s.str()
		return ok
	case '{':
		return s.object(func(span, bool) bool { return s.skip() })
	case '[':
		return s.array(s.skip)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// object reads an object. For every member it calls member with the position at the value, which
// member must read.
func (s *scanner) object(member func(key span, escaped bool) bool) bool {
	if !s.open('{') {
		return false
	}
	if s.take('}') {
		s.depth--
		return true
	}
	for {
		key, escaped, ok := s.str()
		if !ok {
			return false
		}
		s.space()
		if !s.take(':') {
			return false
		}
		s.space()
		if !member(key, escaped) {
			return false
		}
		s.space()
		if s.take(',') {
			s.space()
			continue
		}
		s.depth--
		return s.take('}')
	}
}

// array reads an array, calling element with the position at each element, which element must read.
func (s *scanner) array(element func() bool) bool {
	if !s.open('[') {
		return false
	}
	if s.take(']') {
		s.depth--
		return true
	}
	for {
		if !element() {
			return false
		}
		s.space()
		if s.take(',') {
			s.space()
			continue
		}
		s.depth--
		return s.take(']')
	}
}

func (s *scanner) open(bracket byte) bool {
	s.depth++
	if s.depth > maxDepth || !s.take(bracket) {
		return false
	}
	s.space()
	return true
}

// validJSON reports whether b is exactly one JSON value.
func validJSON(b []byte) bool {
	s := scanner{b: b}
	s.space()
	if !s.skip() {
		return false
	}
	s.space()
	return !s.more()
}

// truthy reports whether a JSON value counts as present: everything but null, false, zero and the
// empty string.
func truthy(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "0", "-0", "0.0":
		return false
	}
	return true
}
