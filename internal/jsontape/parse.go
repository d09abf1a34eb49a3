// Package jsontape reads JSON texts one after the other, several times as fast as a parser that
// builds a tree: one pass over the text notes where each value begins and ends, on a tape that the
// next text reuses, and nothing is copied or converted until it is asked for.
//
//	var parser jsontape.Parser
//	event, ok := parser.Parse(line)
//	if ok && event.TextOf("type") == "message" {
//		show(event.Get("message").TextOf("text"))
//	}
//
// It accepts what is JSON, and a little more where strictness would cost time: control characters
// and unknown escapes in strings, numbers of odd forms.
package jsontape

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Missing Kind = iota // there is no such value
	Null
	True
	False
	Number
	String
	Object
	Array
)

const (
	// maxDepth bounds the nesting that is accepted, so that a line of brackets cannot exhaust the
	// stack.
	maxDepth = 300
	// maxKept is the size, in nodes or bytes, above which the memory of a text is not kept.
	maxKept = 1 << 18
)

// Parser reads texts. Its zero value is ready; it must not be copied or used concurrently.
type Parser struct {
	text  []byte // the text that is read
	nodes []node // the tape; what lies beyond count is free
	count int
	plain []byte // the strings that had to be unescaped
}

// node is one value on the tape. An object is followed by its members, an array by its elements.
type node struct {
	keyStart, keyEnd uint32 // of a member, the place of its name between the quotes; of anything else it means nothing
	start, end       uint32 // its place in the text; of a string, what lies between the quotes
	next             uint32 // the node after it and everything in it
	kind             Kind
	escaped          bool // the string may hold escapes
	keyEscaped       bool // the name may hold escapes
}

// Parse reads a text, which must be one JSON value. The value and everything obtained from it are
// valid until the next call, and only as long as the text does not change.
func (p *Parser) Parse(text []byte) (Value, bool) {
	if len(p.nodes) > maxKept {
		p.nodes = nil
	}
	if cap(p.plain) > maxKept {
		p.plain = nil
	}
	p.text, p.count, p.plain = text, 0, p.plain[:0]
	if uint64(len(text)) > 1<<32-1 {
		return Value{}, false
	}
	end := p.value(skipSpace(text, 0), 1)
	if end < 0 || skipSpace(text, end) != len(text) {
		return Value{}, false
	}
	return Value{p: p}, true
}

// Parse reads a text with a new parser, for callers that read one occasionally.
func Parse(text []byte) (Value, bool) { return new(Parser).Parse(text) }

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// free returns the first free node of the tape.
func (p *Parser) free() *node {
	if p.count >= len(p.nodes) {
		p.grow()
	}
	return &p.nodes[p.count]
}

func (p *Parser) grow() { p.nodes = append(p.nodes, make([]node, max(64, p.count))...) }

// add puts a value without anything in it on the tape. If it is a member, its name is there
// already.
func (p *Parser) add(kind Kind, start, end int, escaped bool) {
	n := p.free()
	p.count++
	n.start, n.end, n.next, n.kind, n.escaped = uint32(start), uint32(end), uint32(p.count), kind, escaped
}

// value reads the value that begins at i and returns the position after it, or -1.
func (p *Parser) value(i, depth int) int {
	b := p.text
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch b[i] {
	case '"':
		end, escaped := stringEnd(b, i+1)
		if end < 0 {
			return -1
		}
		p.add(String, i+1, end, escaped)
		return end + 1
	case '{':
		return p.object(i, depth)
	case '[':
		return p.array(i, depth)
	case 't':
		return p.word(True, "true", i)
	case 'f':
		return p.word(False, "false", i)
	case 'n':
		if end := p.word(Null, "null", i); end >= 0 {
			return end
		}
	}
	end := numberEnd(b, i)
	if end >= 0 {
		p.add(Number, i, end, false)
	}
	return end
}

func (p *Parser) word(kind Kind, word string, i int) int {
	end := i + len(word)
	if end > len(p.text) || string(p.text[i:end]) != word {
		return -1
	}
	p.add(kind, i, end, false)
	return end
}

func (p *Parser) object(i, depth int) int {
	b, self := p.text, p.count
	p.add(Object, i, i, false)
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return p.close(self, i)
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		end, escaped := stringEnd(b, i+1)
		if end < 0 {
			return -1
		}
		n := p.free()
		n.keyStart, n.keyEnd, n.keyEscaped = uint32(i+1), uint32(end), escaped
		if i = skipSpace(b, end+1); i >= len(b) || b[i] != ':' {
			return -1
		}
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == '"' { // most members are strings
			if end, escaped = stringEnd(b, i+1); end < 0 {
				return -1
			}
			p.count++
			n.start, n.end, n.next, n.kind, n.escaped = uint32(i+1), uint32(end), uint32(p.count), String, escaped
			i = end + 1
		} else if i = p.value(i, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		if b[i] == '}' {
			return p.close(self, i)
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

func (p *Parser) array(i, depth int) int {
	b, self := p.text, p.count
	p.add(Array, i, i, false)
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return p.close(self, i)
	}
	for {
		if i = p.value(i, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return p.close(self, i)
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

// close ends an object or an array at its closing bracket.
func (p *Parser) close(self, bracket int) int {
	p.nodes[self].end, p.nodes[self].next = uint32(bracket+1), uint32(p.count)
	return bracket + 1
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
	// shortString is the length up to which looking at words beats the search for the next quote.
	shortString = 32
)

// stringEnd finds the closing quote of the string whose inside begins at start; -1 if there is
// none. Long strings are reported as escaped without a look.
func stringEnd(b []byte, start int) (end int, escaped bool) {
	i := start
	for ; i-start < shortString && len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^('"'*lowBits), w^('\\'*lowBits)
		// A borrow can only mark a byte after a correctly marked one: the lowest mark is correct.
		if marks := ((quote-lowBits)&^quote | (slash-lowBits)&^slash) & highBits; marks != 0 {
			at := i + bits.TrailingZeros64(marks)>>3
			if b[at] == '"' {
				return at, false
			}
			return longStringEnd(b, start, at), true
		}
	}
	if len(b)-i < 8 {
		for ; i < len(b) && b[i] != '\\'; i++ { // the end of the text
			if b[i] == '"' {
				return i, false
			}
		}
	}
	return longStringEnd(b, start, i), true
}

// longStringEnd searches from a position inside the string on: the first quote that an even number
// of backslashes precedes.
func longStringEnd(b []byte, start, from int) int {
	for {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return -1
		}
		quote := from + n
		first := quote
		for first > start && b[first-1] == '\\' {
			first--
		}
		if (quote-first)%2 == 0 {
			return quote
		}
		from = quote + 1
	}
}

// numberEnd returns the position after the number at i, or -1. Its syntax is checked when its value
// is asked for.
func numberEnd(b []byte, i int) int {
	start := i
	for i < len(b) && (b[i] >= '0' && b[i] <= '9' || b[i] == '.' || b[i] == '-' || b[i] == '+' || b[i] == 'e' ||
		b[i] == 'E') {
		i++
	}
	if i == len(b) || i > start+1 || (i == start+1 && b[start] != '-' && b[start] != '+') {
		return i
	}
	if len(b)-i >= 3 {
		if word := string(b[i : i+3]); strings.EqualFold(word, "inf") || strings.EqualFold(word, "nan") {
			return i + 3
		}
	}
	return -1
}
