package jsonenc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/jsontape"
)

// Style says how values are printed.
type Style struct {
	// Indent is the number of spaces per level; 0 prints everything on one line.
	Indent int
	// Level is the level of the value itself.
	Level int
	// Signatures keeps the signatures of thinking blocks, which are long and mean nothing to a
	// reader.
	Signatures bool
}

var parsers = sync.Pool{New: func() any { return new(jsontape.Parser) }}

// AppendJSON appends a JSON value in the form that fit-trace prints everywhere: keys in the order
// of the input, of two equal keys the last value, strings with as few escapes as possible, numbers
// in their shortest form. Anything but JSON is printed as a string.
func (st Style) AppendJSON(dst, raw []byte) []byte {
	parser := parsers.Get().(*jsontape.Parser)
	defer parsers.Put(parser)
	v, ok := parser.Parse(raw)
	if !ok {
		return AppendString(dst, strings.ToValidUTF8(string(bytes.TrimSpace(raw)), "\uFFFD"))
	}
	return st.value(dst, v, st.Level)
}

func (st Style) value(dst []byte, v jsontape.Value, level int) []byte {
	switch v.Kind() {
	case jsontape.Object:
		return st.object(dst, v, level)
	case jsontape.Array:
		return st.array(dst, v, level)
	case jsontape.String:
		return appendInner(dst, v.Inner())
	case jsontape.Number:
		return appendRawNumber(dst, v.Raw())
	case jsontape.Missing, jsontape.Null, jsontape.True, jsontape.False:
	}
	return append(dst, v.Raw()...)
}

// appendInner copies a string unchanged if it is already in the form we write.
func appendInner(dst, inner []byte) []byte {
	if !fewestEscapes(inner) || !utf8.Valid(inner) {
		return AppendString(dst, jsontape.Unescape(inner))
	}
	return append(append(append(dst, '"'), inner...), '"')
}

// fewestEscapes reports whether every escape of a string is needed and is the one that jsonenc
// writes. A control character that is written as a number is left to it.
func fewestEscapes(inner []byte) bool {
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c < ' ':
			return false
		case c == '\\':
			if i++; strings.IndexByte(`"\bfnrt`, inner[i]) < 0 {
				return false
			}
		}
	}
	return true
}

func appendRawNumber(dst, raw []byte) []byte {
	isPlain := len(raw) <= 15 && (raw[0] != '0' || len(raw) == 1)
	for _, c := range raw {
		isPlain = isPlain && c >= '0' && c <= '9'
	}
	if isPlain {
		return append(dst, raw...)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return append(dst, "null"...) // no float64 holds it, or the scanner was too lenient
	}
	return AppendNumber(dst, f)
}

// Member is a member of an object.
type Member struct {
	Key   string
	Value jsontape.Value
}

// Members returns the members of an object in order; of two equal keys the last value counts.
func Members(object jsontape.Value) []Member {
	all := make([]Member, 0, 16)
	var places map[string]int // of large objects
next:
	for key, value := range object.Members() {
		if len(all) >= cap(all) && places == nil {
			places = map[string]int{}
			for i := range all {
				places[all[i].Key] = i
			}
		}
		if places != nil {
			if at, again := places[key]; again {
				all[at].Value = value
				continue
			}
			places[key] = len(all)
		} else {
			for i := range all {
				if all[i].Key == key {
					all[i].Value = value
					continue next
				}
			}
		}
		all = append(all, Member{key, value})
	}
	return all
}

func (st Style) object(dst []byte, object jsontape.Value, level int) []byte {
	thinking := !st.Signatures && string(object.Get("type").Inner()) == "thinking"
	dst = append(dst, '{')
	empty := true
	for _, m := range Members(object) {
		if thinking && m.Key == "signature" {
			continue
		}
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(AppendString(st.newline(dst, level+1), m.Key), ':')
		if st.Indent > 0 {
			dst = append(dst, ' ')
		}
		dst = st.value(dst, m.Value, level+1)
	}
	if !empty {
		dst = st.newline(dst, level)
	}
	return append(dst, '}')
}

func (st Style) array(dst []byte, array jsontape.Value, level int) []byte {
	dst = append(dst, '[')
	empty := true
	for element := range array.Elements() {
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = st.value(st.newline(dst, level+1), element, level+1)
	}
	if !empty {
		dst = st.newline(dst, level)
	}
	return append(dst, ']')
}

func (st Style) newline(dst []byte, level int) []byte {
	if st.Indent == 0 {
		return dst
	}
	dst = append(dst, '\n')
	for range level * st.Indent {
		dst = append(dst, ' ')
	}
	return dst
}

// Compact returns the JSON text of a value on one line, everything kept. What an agent wrote may be
// lenient JSON; the result never is.
func Compact(raw []byte) []byte { return Style{Signatures: true}.AppendJSON(nil, raw) }

// Without returns the compact JSON text of an object without one of its members.
func Without(object []byte, name string) []byte {
	parser := parsers.Get().(*jsontape.Parser)
	defer parsers.Put(parser)
	v, _ := parser.Parse(object)
	dst := []byte{'{'}
	for _, m := range Members(v) {
		if m.Key == name {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = Style{Signatures: true}.value(append(AppendString(dst, m.Key), ':'), m.Value, 0)
	}
	return append(dst, '}')
}

// AppendNumber writes a number in the shortest form that reads back the same, as JavaScript does:
// no exponent between 1e-7 and 1e21.
func AppendNumber(dst []byte, f float64) []byte {
	if f == 0 { // also the negative one
		return append(dst, '0')
	}
	raw, err := json.Marshal(f)
	if err != nil { // not a number, or infinite
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

// EachMember calls visit with the members of a JSON object in order; of two equal keys the last
// value counts. Anything else has none.
func EachMember(object []byte, visit func(key string, value []byte)) {
	var parser jsontape.Parser
	if v, ok := parser.Parse(object); ok {
		for _, m := range Members(v) {
			visit(m.Key, m.Value.Raw())
		}
	}
}

// Text returns the text of a JSON string; ok is false for any other value.
func Text(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return jsontape.Unescape(value[1 : len(value)-1]), true
}
