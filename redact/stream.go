package redact

import (
	"bytes"

	"github.com/fit-eval/fit/internal/jsontape"
)

// separator are the bytes at which a stream may be cut. No escape sequence,
// encoding or shape continues after one, and none depends on what stood before it. stream.pending
// handles secrets that contain one, private-key blocks and wrapped encodings.
var separator = func() *byteSet {
	s := setOf(" \t\n\r\v\f\x00\"'`,;(){}<>|")
	for c := 0x80; c < 0x100; c++ {
		s[c] = true
	}
	return s
}()

func containsSeparator[T string | []byte](s T) bool {
	for i := range len(s) {
		if separator[s[i]] {
			return true
		}
	}
	return false
}

const (
	// streamLimit is the most text without a separator that is held.
	streamLimit = 256 << 10
	// streamTail is how much stays held when the limit is reached: more than any shape of limited
	// length.
	streamTail = 3*jwtPartLimit + keyBlockLimit
)

// stream redacts text that comes in pieces, with the same result however it is
// cut: it holds back the last word, and more if that may be the beginning of
// something.
type stream struct {
	r    *Redactor
	held []byte
	// given is how much of held was returned last; the next call removes it.
	given int
	// seen is how much of held has been looked at for separators.
	seen int
	// dropping is set after a find was given out before its end was known.
	dropping *byteSet
}

// push adds the next piece and returns what is safe to give out. The result is valid until the next
// call.
func (s *stream) push(p []byte) []byte {
	if !s.r.Enabled() {
		return p
	}
	s.forget()
	s.held = append(s.held, s.drop(p)...)
	cut, clean := s.cut()
	switch {
	case cut > 0:
		return s.take(cut, clean)
	case len(s.held) > streamLimit:
		return s.force()
	}
	return nil
}

// flush returns the rest.
func (s *stream) flush() []byte {
	s.dropping = nil
	s.forget()
	return s.take(len(s.held), false)
}

// forget removes what was given out. The rest has been looked at.
func (s *stream) forget() {
	if s.given > 0 {
		s.held = append(s.held[:0], s.held[s.given:]...)
	}
	s.given, s.seen = 0, len(s.held)
}

// take gives out the first n held bytes, redacted unless they are known to be
// clean.
func (s *stream) take(n int, clean bool) []byte {
	if n == 0 {
		return nil
	}
	s.given = n
	if clean {
		return s.held[:n]
	}
	return s.r.Bytes(s.held[:n])
}

// drop leaves out what continues a find that was already given out.
func (s *stream) drop(p []byte) []byte {
	if s.dropping == nil {
		return p
	}
	end := s.dropping.run(p, 0, len(p))
	if end < len(p) {
		s.dropping = nil
	}
	return p[end:]
}

// cut returns how much of the held text is decided, and whether nothing was
// found in it.
func (s *stream) cut() (n int, clean bool) {
	if !containsSeparator(s.held[s.seen:]) {
		return 0, false // a word that grew is still not complete
	}
	x := s.r.index
	cut := min(lastWord(s.held, len(s.held)), x.pending(s.held))
	found := x.find(s.held)
	for {
		before := cut
		for _, f := range found {
			if f.start < cut && cut < f.end {
				cut = f.start
			}
		}
		if cut = lastWord(s.held, cut); cut == before || cut == 0 {
			return cut, len(found) == 0
		}
	}
}

// lastWord returns the beginning of the word that ends at i.
func lastWord(text []byte, i int) int {
	for i > 0 && !separator[text[i-1]] {
		i--
	}
	return i
}

// force gives out most of an endless word.
func (s *stream) force() []byte {
	x := s.r.index
	cut := max(1, len(s.held)-max(streamTail, escapeGrowth*x.longest))
	cut = max(1, backslashesBefore(s.held, cut))
	for _, found := range x.union(x.find(s.held)) {
		switch {
		case found.start >= cut || found.end <= cut:
		case found.end == len(s.held) && found.label >= x.envLabels:
			s.dropping = base64Char
			return s.take(len(s.held), false)
		case found.start > 0:
			cut = found.start
		default:
			cut = found.end
		}
	}
	return s.take(cut, false)
}

// pending returns the beginning of the first thing that contains separators and
// may continue after the end of the text, or the length of the text.
func (x *index) pending(text []byte) int {
	cut := min(openKeyBlock(text), openWrap(text, x.longest))
	cut = min(cut, x.spelled.open(x, text))
	if x.broken.longest == 0 {
		return cut
	}
	from := x.broken.escaped.runBefore(text, len(text), escapeGrowth*x.broken.longest)
	from = lastWord(text, from)
	layers := []*layer{{text: text[from:]}}
	if bytes.ContainsAny(text[from:], `\%+`) {
		layers = x.layersOf(text[from:])
	}
	for _, l := range layers {
		if at := x.openSecret(l.text); at < len(l.text) {
			at, _ = l.back(at, len(l.text))
			cut = min(cut, from+at)
		}
	}
	return cut
}

// openSecret returns the first place from which the text is the beginning of a
// secret that contains separators, or its length. An escape sequence that is
// cut off by the end of the text may be any character.
func (x *index) openSecret(text []byte) int {
	first := x.broken.open(x, text)
	if half := unfinishedEscape(text); half > 0 {
		if at := x.broken.open(x, text[:len(text)-half]); at < len(text)-half {
			first = min(first, at)
		}
	}
	return first
}

// brokenForms are forms that contain separators, by the byte they begin with.
type brokenForms struct {
	begin   [256][]int
	longest int
	// chars are the bytes that the forms consist of; escaped adds those of their escapes.
	chars, escaped byteSet
}

// escapeChar are the bytes of the escapes of JSON, of percent encoding and of HTML.
var escapeChar = setOf(lowers, uppers, digits, `\"/%+&#;`)

func (b *brokenForms) add(f *form, number int) {
	for c := range b.begin {
		if f.same(byte(c), f.text[0]) {
			b.begin[c] = append(b.begin[c], number)
		}
		for i := range len(f.whole) {
			b.chars[c] = b.chars[c] || f.same(byte(c), f.whole[i])
		}
		b.escaped[c] = b.chars[c] || escapeChar[c]
	}
	b.longest = max(b.longest, len(f.text))
}

// open returns the first place from which the text may be the beginning of one of the forms, or its
// length.
func (b *brokenForms) open(x *index, text []byte) int {
	for at := b.chars.runBefore(text, len(text), b.longest); at < len(text); at++ {
		for _, number := range b.begin[text[at]] {
			if x.forms[number].isBegunBy(text[at:]) {
				return at
			}
		}
	}
	return len(text)
}

// unfinishedEscape returns the length of the escape sequence at the end of a
// text that is not complete, with its backslashes. The first half of a pair that
// makes up one character is not complete either.
func unfinishedEscape(text []byte) int {
	end := len(text)
	for n := 1; n <= min(len(text), 5); n++ {
		switch c := text[len(text)-n]; {
		case c == '%' && n < 3:
			return n
		case c == '\\':
			end = backslashesBefore(text, len(text)-n)
		default:
			continue
		}
		break
	}
	if half := end - 6; half >= 0 {
		if c, ok := jsontape.UnicodeEscape(text[half:]); ok && c >= 0xd800 && c < 0xdc00 {
			end = backslashesBefore(text, half)
		}
	}
	return len(text) - end
}

// openKeyBlock returns the beginning of a private-key block that has not ended,
// or the length of the text.
func openKeyBlock(text []byte) int {
	for i := max(0, len(text)-2*keyBlockLimit); ; i++ {
		next := bytes.Index(text[i:], []byte(keyBegin))
		if next < 0 {
			return len(text)
		}
		i += next
		if privateKeyIsOpen(text[i:]) {
			return i
		}
	}
}

// openWrap returns the beginning of the encoded lines at the end of a text, of
// which the next may continue the last, or the length of the text. Lines that are further back than
// the longest form reaches are left out.
func openWrap(text []byte, longest int) int {
	start := len(text)
	end := base64Char.runBefore(text, len(text), len(text))
	for {
		breakAt := lineBreaksBefore(text, end)
		line := base64Char.runBefore(text, breakAt, breakAt)
		if breakAt == end || breakAt-line < wrapWidth {
			return start
		}
		start, end = line, line
		if len(text)-start > 4*(longest+wrapWidth) {
			return start
		}
	}
}

func lineBreaksBefore(text []byte, i int) int {
	for i > 0 && (text[i-1] == '\n' || text[i-1] == '\r') {
		i--
	}
	return i
}
