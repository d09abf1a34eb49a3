package redact

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// index is everything that is looked for, ready to be searched. It is never
// changed after newIndex.
type index struct {
	table  anchorTable
	forms  []form
	labels []string
	// envLabels is how many of the labels are variables; the rest are shapes.
	envLabels   int
	shapeLabels []int
	names       map[string]bool
	// escapable are the characters whose \u escape makes decoding worthwhile.
	escapable byteSet
	// anyBackslash is set if a secret has no anchor that stays plain in JSON.
	anyBackslash bool
	// spaces is set if a secret contains a space, which form encoding writes as +.
	spaces bool
	// begin are the forms that begin with a byte.
	begin [256][]int
	// broken are the secrets that contain a separator of the stream, and spelled the spelled forms
	// that do, by the byte they begin with; see stream.go.
	broken, spelled brokenForms
	// longest is the length of the longest form; reach is how far around an escape to decode.
	longest, reach int
}

const (
	// escapeGrowth is how many times as long a text can become by escapes of
	// the usual depth: \\\\u0061 for a.
	escapeGrowth = 12
	// minReach is enough for all shapes except long tokens.
	minReach = 4 << 10
)

func newIndex(secrets []secret) *index {
	x := &index{names: map[string]bool{}}
	x.table.grams = map[uint32][]anchor{}
	for _, s := range secrets {
		x.addSecret(s)
	}
	x.envLabels = len(x.labels)
	x.addShapes()
	x.addEscapes()
	x.table.freeze()
	x.reach = max(minReach, x.longest*escapeGrowth)
	return x
}

func (x *index) addLabel(layer, name string) int {
	x.names[layer+":"+name] = true
	x.labels = append(x.labels, fmt.Sprintf("[REDACTED:%s:%s]", layer, name))
	return len(x.labels) - 1
}

func (x *index) addSecret(s secret) {
	label := x.addLabel("env", s.name)
	for _, f := range formsOf(s, label) {
		number := len(x.forms)
		x.forms = append(x.forms, f)
		x.longest = max(x.longest, len(f.whole))
		for c := range x.begin {
			if f.same(byte(c), f.text[0]) {
				x.begin[c] = append(x.begin[c], number)
			}
		}
		for _, offset := range f.anchors() {
			for _, gram := range f.spellings(offset) {
				x.table.add(gram, anchor{action: comparePattern, number: int32(number), offset: int32(offset)})
			}
			if f.kind == rawForm {
				x.addEscapesOf(s, offset)
			}
		}
		switch {
		case !containsSeparator(f.text):
		case f.kind == rawForm:
			x.broken.add(&f, number)
		default:
			x.spelled.add(&f, number)
		}
	}
}

// addEscapesOf makes sure that a secret is noticed when characters of its
// anchor are written as escapes. Escapes elsewhere are met when it is compared.
func (x *index) addEscapesOf(s secret, offset int) {
	x.spaces = x.spaces || strings.Contains(s.value, " ")
	for i, c := range s.value {
		if i+utf8.RuneLen(c) <= offset || i >= offset+gramSize {
			continue
		}
		switch {
		case c <= 0xff:
			x.escapable[byte(c)] = true
			x.anyBackslash = x.anyBackslash || c < 0x80 && !plainInJSON(byte(c))
			continue
		case c > 0xffff:
			c, _ = utf16.EncodeRune(c)
		}
		for _, format := range []string{`\u%02x`, `\u%02X`, "Cu%02x", "cu%02x", "Cu%02X", "cu%02X"} { // %5Cu is \u
			x.table.addDecoding(fmt.Sprintf(format, c>>8))
		}
	}
	if s.encoded {
		x.addPercentEscapesOf(s.value, offset)
	}
	if gram := s.value[offset : offset+gramSize]; strings.Contains(gram, " ") {
		x.table.addDecoding(strings.ReplaceAll(gram, " ", "+"))
	}
}

// addPercentEscapesOf looks for each character of the anchor in percent
// encoding, after a plain character or before an encoded one.
func (x *index) addPercentEscapesOf(value string, offset int) {
	for i := max(0, offset-1); i < offset+gramSize; i++ {
		for _, format := range []string{"%%%02x", "%%%02X"} {
			escape := fmt.Sprintf(format, value[i])
			x.table.addDecoding(escape + "%")
			switch {
			case i > 0:
				x.table.addDecoding(value[i-1:i] + escape)
			case len(value) > 1:
				x.table.addDecoding(escape + value[1:2])
			}
		}
	}
}

func (x *index) addShapes() {
	labels := map[string]int{}
	for number, s := range shapes {
		if _, known := labels[s.kind]; !known {
			labels[s.kind] = x.addLabel("pattern", s.kind)
		}
		x.shapeLabels = append(x.shapeLabels, labels[s.kind])
		seen := map[string]bool{}
		for _, a := range s.anchors() {
			if !seen[a.gram] {
				seen[a.gram] = true
				x.table.add(a.gram, anchor{action: matchShape, number: int32(number), offset: int32(a.offset)})
			}
		}
	}
}

// shapeAnchor is four bytes that come offset bytes after the place where a shape
// is looked for.
type shapeAnchor struct {
	gram   string
	offset int
}

// anchors lists the four bytes that give a shape away. A prefix of three is extended by every
// character that the body may have, or preceded by every one that can end the word before:
// disk-cache has sk-c.
func (s *shape) anchors() []shapeAnchor {
	if s.anchor != "" {
		return []shapeAnchor{{s.anchor, 0}}
	}
	var list []shapeAnchor
	for _, prefix := range s.prefixes {
		if len(prefix) >= gramSize {
			list = append(list, shapeAnchor{prefix[:gramSize], 0})
			continue
		}
		for c := range 256 {
			letter := string([]byte{byte(c)})
			switch {
			case s.commonInWords && mayEndWord(byte(c)):
				list = append(list, shapeAnchor{letter + prefix, -1})
			case !s.commonInWords && s.body[c]:
				list = append(list, shapeAnchor{prefix + letter, 0})
			}
		}
	}
	return list
}

// mayEndWord reports whether a word may begin after c: after anything that is not part of a word,
// also if it is escaped, a character of several bytes, or the end of a colour sequence.
func mayEndWord(c byte) bool {
	continuation := c >= 0x80 && c < 0xc0
	return continuation || c < 0x80 && !wordChar[c] || hexDigit[c] || c == colourEnd ||
		strings.IndexByte(escapeLetters, c) >= 0
}

// addEscapes looks for escapes of characters that nobody escapes without intent, so that shapes in
// disguise are noticed too.
func (x *index) addEscapes() {
	for c := range 256 {
		if tokenChar[c] {
			x.escapable[c] = true
		}
		if alnum[c] {
			x.table.addDecoding(fmt.Sprintf("%%%02x%%", c), fmt.Sprintf("%%%02X%%", c))
		}
	}
	for c := range 256 {
		if hexDigit[c] {
			x.table.addDecoding("%25" + string([]byte{byte(c)})) // encoded twice
		}
	}
	seen := map[string]bool{}
	for c := range 256 {
		for _, format := range []string{"u%04x", "u%04X"} {
			// The letters are recognised by u006 and the like, others by all digits,
			// because \u003c and \u001b are frequent.
			gram, offset := fmt.Sprintf(format, c)[:gramSize], 1
			if c < '@' || c > 0x7f {
				gram, offset = fmt.Sprintf(format, c)[1:], 2
			}
			if x.escapable[c] && !seen[gram] {
				seen[gram] = true
				x.table.add(gram, anchor{action: checkUnicode, offset: int32(offset)})
			}
		}
	}
}

func (t *anchorTable) addDecoding(grams ...string) {
	for _, gram := range grams {
		key := gramAt([]byte(gram), 0)
		if len(t.grams[key]) == 0 || t.grams[key][0].action != wantDecoding {
			t.add(gram, anchor{action: wantDecoding})
		}
	}
}
