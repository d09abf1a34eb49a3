package redact

import (
	"bytes"
	"slices"
)

// span is a find: text[start:end] is what the label says.
type span struct{ start, end, label int }

// search is one pass over one text.
type search struct {
	*index
	text  []byte
	spans []span
	// triggers are the places where a secret may be escaped or broken into
	// lines, uncertain what must be decoded around them to be sure.
	triggers  []int
	uncertain []uncertain
	// covered is, for each shape, the end of its last find: inside it the shape
	// is not looked for again, which would take quadratic time.
	covered [maxShapes]int
}

// uncertain is a stretch of text that must be decoded to be sure.
type uncertain struct {
	start, end   int
	decode, wrap bool
}

// find lists all finds in a text, unordered and possibly overlapping.
func (x *index) find(text []byte) []span {
	s := search{index: x, text: text}
	if x.anyBackslash && bytes.IndexByte(text, '\\') >= 0 {
		s.uncertain = []uncertain{{start: 0, end: len(text), decode: true}}
	}
	s.run()
	spans := s.spans
	slices.Sort(s.triggers)
	for _, d := range s.uncertain {
		for _, found := range x.findDecoded(text, d) {
			if s.triggered(found) {
				spans = append(spans, found)
			}
		}
	}
	return spans
}

// triggered reports whether a find contains the place that triggered decoding. Other finds depend
// on the surrounding text and would not be found elsewhere.
func (s *search) triggered(found span) bool {
	at, _ := slices.BinarySearch(s.triggers, found.start)
	return at < len(s.triggers) && s.triggers[at] < found.end ||
		s.anyBackslash && bytes.IndexByte(s.text[found.start:found.end], '\\') >= 0
}

// uncertainAt notes that the surroundings of i must be looked at again, from the
// beginning of a word on: there no escape sequence is open.
func (s *search) uncertainAt(i int, decode, wrap bool) {
	s.triggers = append(s.triggers, i)
	start, end := max(0, i-s.reach), min(len(s.text), i+s.reach)
	known := 0
	if n := len(s.uncertain); n > 0 {
		known = s.uncertain[n-1].end
	}
	for start > known && !separator[s.text[start-1]] {
		start--
	}
	if len(s.uncertain) == 0 || start > known {
		s.uncertain = append(s.uncertain, uncertain{start, end, decode, wrap})
		return
	}
	last := &s.uncertain[len(s.uncertain)-1]
	last.end = max(last.end, end)
	last.decode, last.wrap = last.decode || decode, last.wrap || wrap
}

func (s *search) run() {
	for number := range shapes {
		if shapes[number].commonInWords { // it is noticed by the character before it
			s.match(number, 0)
		}
	}
	for i := s.table.filter.next(s.text, 0); i >= 0; i = s.table.filter.next(s.text, i+1) {
		for _, a := range s.table.lookup(gramAt(s.text, i)) {
			s.try(i, a)
		}
	}
}

func (s *search) try(i int, a anchor) {
	switch a.action {
	case comparePattern:
		s.compare(&s.forms[a.number], i-int(a.offset), int(a.offset))
	case matchShape:
		s.match(int(a.number), i-int(a.offset))
	case checkUnicode:
		if at := i - int(a.offset); s.escapesSecret(at) {
			s.uncertainAt(at, true, false)
		}
	case wantDecoding:
		s.uncertainAt(i, true, false)
	}
}

// match looks for a shape at i.
func (s *search) match(number, i int) {
	if i < s.covered[number] {
		return
	}
	start, end, ok := shapes[number].find(s.text, i)
	if ok {
		s.covered[number] = end
		s.spans = append(s.spans, span{start, end, s.shapeLabels[number]})
	}
	if end > 0 && startsEscape(s.text[end:]) {
		s.uncertainAt(end, true, false)
	}
}

// startsEscape reports whether a text begins with an escape sequence that may
// stand for a character of a credential.
func startsEscape(text []byte) bool {
	escaped := bytes.TrimLeft(text, `\\`)
	switch {
	case len(text) == 0:
		return false
	case text[0] == '%':
		return hexDigit.run(text, 1, 2) == 3
	}
	return len(escaped) < len(text) && len(escaped) > 0 && (escaped[0] == 'u' || escaped[0] == '/')
}

// escapesSecret reports whether at i a \u00 escapes a character that secrets have.
func (s *search) escapesSecret(i int) bool {
	if i < 0 || len(s.text) < i+6 || string(s.text[i+1:i+4]) != `u00` || hexDigit.run(s.text, i+4, 2) != i+6 {
		return false
	}
	percent := i >= 2 && bytes.EqualFold(s.text[i-2:i+1], []byte("%5c"))
	if s.text[i] != '\\' && !percent {
		return false
	}
	return s.escapable[unhex(s.text[i+4])<<4|unhex(s.text[i+5])]
}

func (s *search) compare(f *form, start, anchorAt int) {
	stop, ok := f.compare(s.text, start, anchorAt)
	if ok {
		start, end := f.grow(s.text, start, start+len(f.text))
		s.spans = append(s.spans, span{start, end, f.label})
		return
	}
	// The text differs at stop. If an escape or a line break is what differs,
	// it begins at most an escape's length before.
	const escapeLength = 6
	if stop < 0 || stop >= len(s.text) {
		return
	}
	decode, wrap := false, false
	for _, c := range s.text[max(0, stop-escapeLength+1) : stop+1] {
		switch c {
		case '\\':
			decode, wrap = true, f.kind != rawForm
		case '%', '&':
			decode = true
		case '+':
			decode = decode || s.text[stop] == '+' && f.text[stop-start] == ' '
		case '\n', '\r':
			wrap = f.kind != rawForm
		case ' ': // a dump continues in its next column or line, which may be one of JSON
			wrap = wrap || f.kind == hexForm || f.kind == spelledForm
			decode = decode || wrap
		}
	}
	if decode || wrap {
		s.uncertainAt(stop, decode, wrap)
	}
}
