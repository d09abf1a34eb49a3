package query

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsontape"
)

// unescape returns the text of a string, given what is between its quotes.
func unescape(inner []byte) string { return jsontape.Unescape(inner) }

// optional returns the text of a string, nil for one that is empty or missing.
func optional(inner []byte) *string {
	if len(inner) == 0 {
		return nil
	}
	return new(unescape(inner))
}

// textMember returns the text of a string member, nil if there is none.
func textMember(object jsontape.Value, name string) *string {
	inner := object.Get(name).Inner()
	if inner == nil {
		return nil
	}
	return new(unescape(inner))
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// appendNumber writes a number in the shortest form that reads back the same, as JavaScript does:
// no exponent between 1e-7 and 1e21.
func appendNumber(dst []byte, f float64) []byte {
	if f == 0 { // also the negative one
		return append(dst, '0')
	}
	raw, err := json.Marshal(f)
	if err != nil { // not a number, or infinite
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

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

// AppendJSON appends a JSON value in the form that this tool prints everywhere: keys in the order
// of the input, of two equal keys the last value, strings with as few escapes as possible, numbers
// in their shortest form. Anything but JSON is printed as a string.
func (st Style) AppendJSON(dst, raw []byte) []byte {
	parser := parsers.Get().(*jsontape.Parser)
	defer parsers.Put(parser)
	v, ok := parser.Parse(raw)
	if !ok {
		return jsonenc.AppendString(dst, strings.ToValidUTF8(string(bytes.TrimSpace(raw)), "\uFFFD"))
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
		return jsonenc.AppendString(dst, unescape(inner))
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
	return appendNumber(dst, f)
}

type member struct {
	key   string
	value jsontape.Value
}

// members returns the members of an object in order; of two equal keys the last value counts.
func members(object jsontape.Value) []member {
	all := make([]member, 0, 16)
	var places map[string]int // of large objects
next:
	for key, value := range object.Members() {
		if len(all) >= cap(all) && places == nil {
			places = map[string]int{}
			for i := range all {
				places[all[i].key] = i
			}
		}
		if places != nil {
			if at, again := places[key]; again {
				all[at].value = value
				continue
			}
			places[key] = len(all)
		} else {
			for i := range all {
				if all[i].key == key {
					all[i].value = value
					continue next
				}
			}
		}
		all = append(all, member{key, value})
	}
	return all
}

func (st Style) object(dst []byte, object jsontape.Value, level int) []byte {
	thinking := !st.Signatures && string(object.Get("type").Inner()) == "thinking"
	dst = append(dst, '{')
	empty := true
	for _, m := range members(object) {
		if thinking && m.key == "signature" {
			continue
		}
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(jsonenc.AppendString(st.newline(dst, level+1), m.key), ':')
		if st.Indent > 0 {
			dst = append(dst, ' ')
		}
		dst = st.value(dst, m.value, level+1)
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

// compact returns the JSON text of a value on one line, everything kept. What an agent wrote may be
// lenient JSON; the result never is.
func compact(raw []byte) json.RawMessage { return Style{Signatures: true}.AppendJSON(nil, raw) }

// withoutType returns the compact JSON text of an object without its type.
func withoutType(object []byte) json.RawMessage {
	parser := parsers.Get().(*jsontape.Parser)
	defer parsers.Put(parser)
	v, _ := parser.Parse(object)
	dst := []byte{'{'}
	for _, m := range members(v) {
		if m.key == "type" {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = Style{Signatures: true}.value(append(jsonenc.AppendString(dst, m.key), ':'), m.value, 0)
	}
	return append(dst, '}')
}

// EachMember calls visit with the members of a JSON object in order; of two equal keys the last
// value counts. Anything else has none.
func EachMember(object []byte, visit func(key string, value []byte)) {
	var parser jsontape.Parser
	if v, ok := parser.Parse(object); ok {
		for _, m := range members(v) {
			visit(m.key, m.value.Raw())
		}
	}
}

// Text returns the text of a JSON string; ok is false for any other value.
func Text(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return unescape(value[1 : len(value)-1]), true
}
