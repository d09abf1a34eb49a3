package jsontape

import (
	"bytes"
	"iter"
	"math"
	"strconv"
	"unsafe"
)

// Value is a value of the text that its Parser read last. The zero Value is one that is missing: it
// has no members and no elements, and is empty as a text, zero as a number and false as a truth.
type Value struct {
	p  *Parser
	at uint32
}

func (v Value) node() *node { return &v.p.nodes[v.at] }

// Kind returns the kind of the value.
func (v Value) Kind() Kind {
	if v.p == nil {
		return Missing
	}
	return v.node().kind
}

// Exists reports whether there is a value at all; null is one.
func (v Value) Exists() bool { return v.p != nil }

// Get returns the member of an object, the first one of a name.
func (v Value) Get(key string) Value {
	if v.p == nil {
		return Value{}
	}
	nodes, text := v.p.nodes, v.p.text
	self := &nodes[v.at]
	if self.kind != Object {
		return Value{}
	}
	unsure := false
	for i, end := v.at+1, self.next; i < end; {
		n := &nodes[i]
		if int(n.keyEnd-n.keyStart) == len(key) && string(text[n.keyStart:n.keyEnd]) == key {
			return Value{v.p, i}
		}
		unsure = unsure || n.keyEscaped
		i = n.next
	}
	if unsure {
		return v.getEscaped(key)
	}
	return Value{}
}

// getEscaped looks at the keys that are not written plainly.
func (v Value) getEscaped(key string) Value {
	for name, member := range v.Members() {
		if name == key {
			return member
		}
	}
	return Value{}
}

// Path follows members down from the value.
func (v Value) Path(keys ...string) Value {
	for _, key := range keys {
		v = v.Get(key)
	}
	return v
}

// Members iterates over the members of an object, in order. Keys are views, as texts are.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for i, end := v.at+1, v.node().next; i < end; i = v.p.nodes[i].next {
			n := &v.p.nodes[i]
			if !yield(v.p.plainText(n.keyStart, n.keyEnd, n.keyEscaped), Value{v.p, i}) {
				return
			}
		}
	}
}

// Elements iterates over the elements of an array, in order.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		for i, end := v.at+1, v.node().next; i < end; i = v.p.nodes[i].next {
			if !yield(Value{v.p, i}) {
				return
			}
		}
	}
}

// Only returns the element of an array that has just one.
func (v Value) Only() (Value, bool) {
	if v.Kind() != Array {
		return Value{}, false
	}
	first, end := v.at+1, v.node().next
	if first == end || v.p.nodes[first].next != end {
		return Value{}, false
	}
	return Value{v.p, first}, true
}

// Empty reports whether an object or an array has no elements; it is true for every other value.
func (v Value) Empty() bool { return v.p == nil || v.node().next == v.at+1 }

// Raw returns the value as it is in the text.
func (v Value) Raw() []byte {
	if v.p == nil {
		return nil
	}
	n := v.node()
	if n.kind == String {
		return v.p.text[n.start-1 : n.end+1]
	}
	return v.p.text[n.start:n.end]
}

// Span returns where the value is in the text, the quotes of a string included.
func (v Value) Span() (start, end int) {
	if v.p == nil {
		return 0, 0
	}
	n := v.node()
	if n.kind == String {
		return int(n.start) - 1, int(n.end) + 1
	}
	return int(n.start), int(n.end)
}

// Text returns the text of a string, as a view: it is valid as long as the value is.
func (v Value) Text() string {
	if v.Kind() != String {
		return ""
	}
	n := v.node()
	return v.p.plainText(n.start, n.end, n.escaped)
}

// plainText returns the text between the quotes of a string, unescaped.
func (p *Parser) plainText(from, to uint32, escaped bool) string {
	inner := p.text[from:to]
	if !escaped {
		return view(inner)
	}
	first := bytes.IndexByte(inner, '\\')
	if first < 0 {
		return view(inner)
	}
	start := len(p.plain)
	p.plain = unescape(p.plain, inner, first)
	return view(p.plain[start:])
}

// TextOf returns the text of a member.
func (v Value) TextOf(key string) string { return v.Get(key).Text() }

// Borrower is for those of this module who are content with views where others get copies, because
// copies would take them as long as the reading.
type Borrower struct{ _ byte }

// Borrow is the one Borrower.
var Borrow = new(Borrower)

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Int64 returns the value of a number that is whole and fits; 0 for anything else.
func (v Value) Int64() int64 {
	if v.Kind() != Number {
		return 0
	}
	n, err := strconv.ParseInt(view(v.Raw()), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Int returns the value of a number that is whole and fits; 0 for anything else.
func (v Value) Int() int {
	n := v.Int64()
	if int64(int(n)) != n {
		return 0
	}
	return int(n)
}

// Float64 returns the value of a number; one that is too large is infinite, as in Go.
func (v Value) Float64() float64 {
	if v.Kind() != Number {
		return 0
	}
	f, err := strconv.ParseFloat(view(v.Raw()), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0
	}
	return f
}

// Bool returns the value of a boolean.
func (v Value) Bool() bool { return v.Kind() == True }
