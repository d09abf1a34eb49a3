package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

type formKind uint8

const (
	rawForm formKind = iota
	base64Form
	hexForm
	// spelledForm is a secret of which every character is written as an escape or is followed by a
	// separator: \x73\x65, &#115;&#101;, 73 65, or UTF-16.
	spelledForm
)

// form is one way a secret can be in a text, after escapes are decoded.
type form struct {
	kind  formKind
	label int
	// text is what must be there in full: the value, the hex digits in lower
	// case, or the part of the base64 that depends only on the secret, in the standard alphabet.
	text string
	// before is the base64 character whose low bits are the secret's first
	// bits; after are those that follow the text, the last of which may hold
	// the secret's last bits in its high bits.
	before, beforeMask byte
	after              string
	lastMask           byte
	// whole is the text and what follows it.
	whole string
	twice bool // encoded twice
}

const base64Alphabet = uppers + lowers + digits + "+/"

var base64Value = func() (values [256]byte) {
	for i := range len(base64Alphabet) {
		values[base64Alphabet[i]] = byte(i)
	}
	values['-'], values['_'] = values['+'], values['/']
	return values
}()

// formsOf lists the forms of a secret.
func formsOf(s secret, label int) []form {
	forms := []form{{kind: rawForm, label: label, text: s.value}}
	if s.encoded {
		once := encodingsOf(s.value, label)
		forms = append(forms, once...)
		for _, f := range once {
			if len(f.text) < 2*gramSize {
				continue
			}
			for _, twice := range encodingsOf(f.text, label) {
				twice.twice = true
				forms = append(forms, twice)
			}
		}
		if isASCII(s.value) {
			forms = append(forms, encodingsOf(inUTF16(s.value), label)...)
		}
		for _, text := range spellings(s.value) {
			forms = append(forms, form{kind: spelledForm, label: label, text: text})
		}
	}
	for i, f := range forms {
		forms[i].whole = f.text + f.after
	}
	return forms
}

// encodingsOf returns the forms of a value in hex and in base64.
func encodingsOf(value string, label int) []form {
	forms := []form{{kind: hexForm, label: label, text: hex.EncodeToString([]byte(value))}}
	for offset := range 3 {
		forms = append(forms, base64FormOf(value, label, offset))
	}
	return forms
}

// inUTF16 returns what the encodings of a value in both byte orders have in common.
func inUTF16(value string) string { return strings.Join(strings.Split(value, ""), "\x00") }

// base64FormOf returns the base64 form of a value that begins at the given byte of a group of
// three. Its required text lacks the last four characters, so that an encoding that was cut or ends
// differently is found as well; those of the four that are present are then taken too.
func base64FormOf(value string, label, offset int) form {
	encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + value))
	lead := [3]int{0, 2, 3}[offset]
	f := form{
		kind:     base64Form,
		label:    label,
		text:     encoded[lead : len(encoded)-4],
		after:    encoded[len(encoded)-4:],
		lastMask: 0x3f,
	}
	switch offset {
	case 1:
		f.before, f.beforeMask = encoded[1], 0x0f
	case 2:
		f.before, f.beforeMask = encoded[2], 0x03
	}
	switch (offset + len(value)) % 3 {
	case 1:
		f.lastMask = 0x30
	case 2:
		f.lastMask = 0x3c
	}
	return f
}

// same reports whether a byte of the text stands for a byte of the form.
func (f *form) same(text, want byte) bool {
	if text == want {
		return true
	}
	switch f.kind {
	case base64Form:
		return text == '-' && want == '+' || text == '_' && want == '/'
	case hexForm, spelledForm:
		return want >= 'a' && want <= 'z' && text|0x20 == want
	case rawForm:
	}
	return false
}

// compare looks for the form at start. If it is not there, stop is where the
// text first differs when read outwards from the anchor.
func (f *form) compare(text []byte, start, anchorAt int) (stop int, ok bool) {
	for i := anchorAt; i < len(f.text); i++ {
		if start+i >= len(text) || !f.same(text[start+i], f.text[i]) {
			return start + i, false
		}
	}
	for i := anchorAt - 1; i >= 0; i-- {
		if start+i < 0 || !f.same(text[start+i], f.text[i]) {
			return start + i, false
		}
	}
	return 0, true
}

// grow extends a find to the base64 characters around it that hold bits of the secret, and the
// padding.
func (f *form) grow(text []byte, start, end int) (int, int) {
	if f.kind != base64Form {
		return start, end
	}
	if start > 0 && f.beforeMask != 0 && base64Char[text[start-1]] &&
		(base64Value[text[start-1]]^base64Value[f.before])&f.beforeMask == 0 {
		start--
	}
	for i := range len(f.after) {
		mask := byte(0x3f)
		if i == len(f.after)-1 {
			mask = f.lastMask
		}
		if end >= len(text) || !base64Char[text[end]] || (base64Value[text[end]]^base64Value[f.after[i]])&mask != 0 {
			return start, end
		}
		end++
	}
	for range 2 {
		if end < len(text) && text[end] == '=' {
			end++
		}
	}
	return start, end
}

// plainParts are the stretches between entities.
var plainParts = lazyregexp.New(`(?:^|;)[^&;]{4,}`)

// anchors lists the offsets of the four bytes to look for. Encodings have two,
// because a line break inside one anchor leaves the other.
func (f *form) anchors() []int {
	best := f.bestAnchor(0, len(f.text))
	if f.kind == spelledForm && strings.Contains(f.text, "&") { // entities are frequent, what is between them is not
		longest := 0
		for _, plain := range plainParts.Get().FindAllStringIndex(f.text, -1) {
			if size := plain[1] - plain[0]; size > longest+1 {
				best, longest = f.bestAnchor(plain[0]+min(1, plain[0]), plain[1]), size
			}
		}
	}
	once := f.kind == rawForm || f.twice || f.kind == spelledForm && !strings.Contains(f.text, " ")
	if once || len(f.text) < 2*gramSize {
		return []int{best}
	}
	half := len(f.text) / 2
	anchors := []int{f.bestAnchor(0, half), f.bestAnchor(half, len(f.text))}
	if f.kind == base64Form && len(f.text) >= 4*gramSize { // short lines may break both
		anchors = append(anchors, f.bestAnchor(half/2, half/2+half))
	}
	slices.Sort(anchors)
	return slices.Compact(anchors)
}

// bestAnchor picks the four bytes that are rarest in ordinary text, and that no
// JSON encoder writes with a backslash if there are such.
func (f *form) bestAnchor(from, to int) int {
	best, bestScore := from, -1
	for i := from; i+gramSize <= to; i++ {
		score := 0
		for _, c := range []byte(f.text[i : i+gramSize]) {
			score += anchorWorth(f.kind, c)
		}
		if f.text[i] == f.text[i+1] || f.text[i+2] == f.text[i+3] {
			score--
		}
		if score > bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

func anchorWorth(kind formKind, c byte) int {
	const decisive = 100
	switch {
	case (kind == hexForm || kind == spelledForm) && hexDigit[c]:
		if c <= '9' {
			return decisive
		}
		return 0
	case kind == base64Form && (c == '+' || c == '/'):
		return 0
	case !plainInJSON(c):
		return 0
	case strings.IndexByte(" <>&'=+", c) >= 0:
		return decisive / 4 // some encoders write them as \u and a number, or as +
	case c >= 'A' && c <= 'Z', strings.IndexByte("jqxzkvw", c) >= 0:
		return decisive + 4
	case c >= '0' && c <= '9':
		return decisive + 3
	case strings.IndexByte("eatoinsr", c) >= 0:
		return decisive + 1
	}
	return decisive + 2
}

// plainInJSON reports whether encoders leave a character as it is, or write \u
// and its number, which has its own anchor.
func plainInJSON(c byte) bool {
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '/'
}

// spellings lists every way four bytes of a form can be written: letters of hex
// digits in both cases, base64 in both alphabets.
func (f *form) spellings(offset int) []string {
	list := []string{""}
	for _, c := range []byte(f.text[offset : offset+gramSize]) {
		options := []byte{c}
		switch {
		case (f.kind == hexForm || f.kind == spelledForm) && c >= 'a' && c <= 'z':
			options = append(options, c-0x20)
		case f.kind == base64Form && c == '+':
			options = append(options, '-')
		case f.kind == base64Form && c == '/':
			options = append(options, '_')
		}
		var longer []string
		for _, head := range list {
			for _, o := range options {
				longer = append(longer, head+string([]byte{o}))
			}
		}
		list = longer
	}
	return list
}

// spellings lists the ways to write a value one character at a time. Letters may be in either case.
func spellings(value string) []string {
	join := func(format, between string) string {
		var b strings.Builder
		for i := range len(value) {
			if i > 0 {
				b.WriteString(between)
			}
			fmt.Fprintf(&b, format, value[i])
		}
		return b.String()
	}
	all := []string{
		join(`\x%02x`, ""),
		join("%02x", " "), join("%02x", ":"), join("0x%02x", ", "),
		grouped(value, 0), grouped(value, 1),
		join("0x%02x", " "), join("0x%02x", ","),
	}
	if isASCII(value) {
		all = append(all, join("&#%d;", ""), join("&#x%x;", ""), join("%c", "\x00"), join("%c", `\u0000`))
	}
	escaped := html.EscapeString(value)
	for _, text := range []string{escaped, strings.ReplaceAll(escaped, "&#34;", "&quot;")} {
		if text != value && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// grouped returns hex in groups of two bytes; the value begins with the first or the second of a
// group.
func grouped(value string, offset int) string {
	var b strings.Builder
	for i := range len(value) {
		if i > 0 && (i+offset)%2 == 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%02x", value[i])
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
