package query

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/jsontape"
)

// unescape returns the text of a string given as it stands between its quotes. Lone surrogates
// become U+FFFD.
func unescape(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return validText(string(raw))
	}
	var out strings.Builder
	out.Grow(len(raw))
	for i := 0; i < len(raw); {
		next := bytes.IndexByte(raw[i:], '\\')
		if next < 0 {
			out.Write(raw[i:])
			break
		}
		out.Write(raw[i : i+next])
		i += next
		r, size := escapedRune(raw[i:])
		out.WriteRune(r)
		i += size
	}
	return validText(out.String())
}

// validText is strings.ToValidUTF8 with a shorter way for what is valid, as nearly everything is.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// escapedRune decodes the escape that b begins with. The escape was validated by the scanner; a
// pair of surrogates counts as one.
func escapedRune(b []byte) (r rune, size int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unicodeEscape(b)
	}
	return rune(b[1]), 2
}

func unicodeEscape(b []byte) (rune, int) {
	first, ok := jsontape.UnicodeEscape(b)
	if !ok {
		return utf8.RuneError, min(len(b), 2)
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	if second, ok := jsontape.UnicodeEscape(b[6:]); ok {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, 12
		}
	}
	return utf8.RuneError, 6
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string with as few escapes as the format allows.
func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // every byte that is none becomes U+FFFD
	}
	dst = append(slices.Grow(dst, len(s)+2), '"')
	text, clean := []byte(s), 0 // the compiler does not copy what is only read
	for {
		stop := nextStop(text, clean)
		dst = append(dst, s[clean:stop]...)
		if stop == len(s) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, s[stop])
		clean = stop + 1
	}
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendNumber writes a number in the shortest form that reads back the same, as JavaScript does:
// no exponent between 1e-7 and 1e21.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f == 0 {
		return append(dst, '0')
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if format == 'e' { // 1e-09 is written 1e-9
		if n := len(dst); n-start >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
	}
	return dst
}

// Style says how values are printed.
type Style struct {
	// Indent is the number of spaces per level; 0 prints everything on one line.
	Indent int
	// Level is the level that the value itself stands on.
	Level int
	// Signatures keeps the signatures of thinking blocks, which are long and mean nothing to a
	// reader.
	Signatures bool
}

// AppendJSON appends a JSON value in the form that this tool prints everywhere: keys in the order
// of the input, of two equal keys the last value, strings with as few escapes as possible, numbers
// in their shortest form. What is no JSON is printed as a string.
func (st Style) AppendJSON(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if !validJSON(raw) {
		return appendString(dst, string(raw))
	}
	p := printer{style: st, scanner: scanner{b: raw}}
	return p.value(dst, st.Level)
}

// printer rewrites a value that is known to be valid.
type printer struct {
	scanner
	style Style
}

type member struct {
	key   string
	value span
}

func (p *printer) value(dst []byte, level int) []byte {
	switch c := p.b[p.i]; {
	case c == '{':
		return p.objectValue(dst, level)
	case c == '[':
		return p.arrayValue(dst, level)
	case c == '"':
		text, escaped, _ := p.str()
		return p.stringValue(dst, text, escaped)
	case c == '-' || isDigit(c):
		return p.numberValue(dst)
	default:
		word, _ := p.scanner.value()
		return append(dst, word.of(p.b)...)
	}
}

// stringValue copies a string as it stands if it is already in the form we write.
func (p *printer) stringValue(dst []byte, text span, escaped bool) []byte {
	raw := text.of(p.b)
	if (!escaped || fewestEscapes(raw)) && utf8.Valid(raw) {
		dst = append(dst, '"')
		dst = append(dst, raw...)
		return append(dst, '"')
	}
	return appendString(dst, unescape(raw))
}

// fewestEscapes reports whether every escape of a string is needed, and is the one that
// appendEscape writes. A control character that is written as a number is left to it.
func fewestEscapes(raw []byte) bool {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return true
		}
		if bytes.IndexByte([]byte(`"\bfnrt`), raw[at+1]) < 0 {
			return false
		}
		raw = raw[at+2:]
	}
}

func (p *printer) numberValue(dst []byte) []byte {
	text, _ := p.scanner.value()
	raw := text.of(p.b)
	if len(raw) <= 15 && bytes.IndexFunc(raw, func(r rune) bool { return r < '0' || r > '9' }) < 0 {
		return append(dst, raw...)
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	return appendNumber(dst, f)
}

func (p *printer) members() []member {
	var members []member
	places := map[string]int{}
	p.object(func(key span, _ bool) bool {
		name := unescape(key.of(p.b))
		value, ok := p.scanner.value()
		if place, again := places[name]; again {
			members[place].value = value
			return ok
		}
		places[name] = len(members)
		members = append(members, member{name, value})
		return ok
	})
	return members
}

func (p *printer) objectValue(dst []byte, level int) []byte {
	members := p.members()
	if !p.style.Signatures {
		members = p.withoutSignature(members)
	}
	if len(members) == 0 {
		return append(dst, '{', '}')
	}
	after := p.i
	dst = append(dst, '{')
	for n, m := range members {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = p.newline(dst, level+1)
		dst = appendString(dst, m.key)
		dst = append(dst, ':')
		if p.style.Indent > 0 {
			dst = append(dst, ' ')
		}
		p.i = int(m.value.start)
		dst = p.value(dst, level+1)
	}
	p.i = after
	dst = p.newline(dst, level)
	return append(dst, '}')
}

func (p *printer) withoutSignature(members []member) []member {
	thinking := false
	for _, m := range members {
		thinking = thinking || m.key == "type" && string(m.value.of(p.b)) == `"thinking"`
	}
	if !thinking {
		return members
	}
	kept := members[:0]
	for _, m := range members {
		if m.key != "signature" {
			kept = append(kept, m)
		}
	}
	return kept
}

func (p *printer) arrayValue(dst []byte, level int) []byte {
	dst = append(dst, '[')
	first := true
	p.array(func() bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = p.newline(dst, level+1)
		dst = p.value(dst, level+1)
		return true
	})
	if !first {
		dst = p.newline(dst, level)
	}
	return append(dst, ']')
}

func (p *printer) newline(dst []byte, level int) []byte {
	if p.style.Indent == 0 {
		return dst
	}
	dst = append(dst, '\n')
	for range level * p.style.Indent {
		dst = append(dst, ' ')
	}
	return dst
}

// compact is the JSON text of a value on one line, everything kept.
func compact(raw []byte) []byte { return Style{Signatures: true}.AppendJSON(nil, raw) }

// EachMember calls visit with the members of a JSON object in order; of two equal keys the last
// value counts. Anything else has none.
func EachMember(object []byte, visit func(key string, value []byte)) {
	object = bytes.TrimSpace(object)
	if len(object) == 0 || object[0] != '{' || !validJSON(object) {
		return
	}
	p := printer{scanner: scanner{b: object}}
	for _, m := range p.members() {
		visit(m.key, m.value.of(object))
	}
}

// Text is what a JSON string says; ok is false for any other value.
func Text(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return unescape(value[1 : len(value)-1]), true
}
