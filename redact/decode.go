package redact

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/jsontape"
)

// patch is a place where a decoded text differs from its origin: size bytes at
// at were made of fromSize bytes at from.
type patch struct{ at, size, from, fromSize int }

// layer is a text with some escapes decoded, and what it takes to translate positions back.
type layer struct {
	text    []byte
	patches []patch
	origin  *layer
	// depth and percents limit how much is decoded.
	depth, percents int
}

// back translates a span of the layer into one of the text the layers began with.
func (l *layer) back(start, end int) (int, int) {
	for ; l.origin != nil; l = l.origin {
		start, _ = l.place(start)
		_, end = l.place(end - 1)
	}
	return start, end
}

// place returns what the byte at i was made of.
func (l *layer) place(i int) (from, to int) {
	low, high := 0, len(l.patches) // the last patch at or before i
	for low < high {
		if mid := (low + high) / 2; l.patches[mid].at <= i {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return i, i + 1
	}
	p := l.patches[low-1]
	if i < p.at+p.size {
		return p.from, p.from + p.fromSize
	}
	from = p.from + p.fromSize + i - p.at - p.size
	return from, from + 1
}

const (
	maxDepth    = 4
	maxPercents = 2
	maxLayers   = 24
)

// layersOf decodes a text in every order of JSON and percent escapes, as deep
// as they are nested, up to a limit.
func (x *index) layersOf(text []byte) []*layer {
	layers := []*layer{{text: text}}
	for i := 0; i < len(layers); i++ {
		l := layers[i]
		if l.depth == maxDepth {
			continue
		}
		next := []*layer{l.unescaped(), l.withoutEntities()}
		if l.percents < maxPercents {
			next = append(next, l.percentDecoded(false))
			if x.spaces && bytes.IndexByte(l.text, '+') >= 0 {
				next = append(next, l.percentDecoded(true))
			}
		}
		for _, n := range next {
			known := func(l *layer) bool { return bytes.Equal(l.text, n.text) }
			if n != nil && len(layers) < maxLayers && !slices.ContainsFunc(layers, known) {
				layers = append(layers, n)
			}
		}
	}
	return layers
}

// findDecoded searches a stretch of text in its decoded layers.
func (x *index) findDecoded(text []byte, d uncertain) []span {
	text = text[d.start:nextSeparator(text, d.end)]
	layers := []*layer{{text: text}}
	if d.decode {
		layers = x.layersOf(text)
	}
	var spans []span
	wrap := d.wrap
	for _, l := range layers[1:] {
		s := search{index: x, text: l.text}
		s.run()
		for _, again := range s.uncertain {
			wrap = wrap || again.wrap
		}
		spans = append(spans, l.translate(s.spans)...)
	}
	if wrap {
		for _, l := range layers {
			spans = append(spans, x.findUnwrapped(l)...)
		}
	}
	for i := range spans {
		spans[i].start += d.start
		spans[i].end += d.start
	}
	return spans
}

// findUnwrapped searches a layer without the line breaks of wrapped encodings.
func (x *index) findUnwrapped(l *layer) []span {
	found := x.secretsIn(l.unwrapped())
	dump := l.undumped()
	for _, s := range x.secretsIn(dump) {
		s.end = endOfDumpLine(l.text, s.end)
		found = append(found, s)
	}
	return l.translate(found)
}

// secretsIn searches a layer for secrets, and returns where they are in the layer it was made of.
func (x *index) secretsIn(l *layer) []span {
	if l == nil {
		return nil
	}
	s := search{index: x, text: l.text}
	s.run()
	secrets := slices.DeleteFunc(s.spans, func(s span) bool { return s.label >= x.envLabels })
	for i, s := range secrets {
		secrets[i].start, _ = l.place(s.start)
		_, secrets[i].end = l.place(s.end - 1)
	}
	return secrets
}

// translate turns finds in the layer into finds in the text it came from.
func (l *layer) translate(spans []span) []span {
	for i, s := range spans {
		spans[i].start, spans[i].end = l.back(s.start, s.end)
	}
	return spans
}

func nextSeparator(text []byte, i int) int {
	for i < len(text) && !separator[text[i]] {
		i++
	}
	return i
}

// decoder builds a layer from a text by leaving stretches as they are and
// replacing escapes.
type decoder struct {
	from    []byte
	out     []byte
	copied  int
	patches []patch
}

func (d *decoder) replace(from, to int, with ...byte) {
	if d.out == nil {
		d.out = make([]byte, 0, len(d.from))
	}
	d.out = append(d.out, d.from[d.copied:from]...)
	d.patches = append(d.patches, patch{len(d.out), len(with), from, to - from})
	d.out = append(d.out, with...)
	d.copied = to
}

// layer returns the decoded text, or nil if nothing was replaced.
func (d *decoder) layer(origin *layer) *layer {
	if len(d.patches) == 0 {
		return nil
	}
	return &layer{
		text:     append(d.out, d.from[d.copied:]...),
		patches:  d.patches,
		origin:   origin,
		depth:    origin.depth + 1,
		percents: origin.percents,
	}
}

// unescaped decodes one level of JSON escapes.
func (l *layer) unescaped() *layer {
	d := decoder{from: l.text}
	for i := 0; i < len(l.text); {
		next := bytes.IndexByte(l.text[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		size, with := jsonEscape(l.text[i:])
		if size > 0 {
			d.replace(i, i+size, with...)
		}
		i += max(size, 1)
	}
	return d.layer(l)
}

// jsonEscape decodes the escape sequence a text begins with; size is 0 if there is none.
func jsonEscape(text []byte) (size int, with []byte) {
	if len(text) < 2 {
		return 0, nil
	}
	switch c := text[1]; c {
	case '"', '\\', '/':
		return 2, text[1:2]
	case 'b':
		return 2, []byte{'\b'}
	case 'f':
		return 2, []byte{'\f'}
	case 'n':
		return 2, []byte{'\n'}
	case 'r':
		return 2, []byte{'\r'}
	case 't':
		return 2, []byte{'\t'}
	case 'x': // not JSON, but what shells and most languages write
		if hexDigit.run(text, 2, 2) == 4 {
			return 4, []byte{unhex(text[2])<<4 | unhex(text[3])}
		}
	case 'u':
		first, ok := jsontape.UnicodeEscape(text)
		if !ok {
			return 0, nil
		}
		if !utf16.IsSurrogate(first) {
			return 6, utf8.AppendRune(nil, first)
		}
		second, _ := jsontape.UnicodeEscape(text[6:])
		if c := utf16.DecodeRune(first, second); c != utf8.RuneError {
			return 12, utf8.AppendRune(nil, c)
		}
		return 0, nil // half a character stays as it is
	}
	return 0, nil
}

// percentDecoded decodes one level of percent encoding, and + as a space if asked.
func (l *layer) percentDecoded(plus bool) *layer {
	d := decoder{from: l.text}
	for i := 0; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '+' && plus:
			d.replace(i, i+1, ' ')
		case c == '%' && hexDigit.run(l.text, i+1, 2) == i+3:
			d.replace(i, i+3, unhex(l.text[i+1])<<4|unhex(l.text[i+2]))
			i += 2
		}
	}
	n := d.layer(l)
	if n != nil {
		n.percents++
	}
	return n
}

// wrapWidth is the shortest line after which encoded text is taken to continue in
// the next: base64 breaks at 64 or 76 characters, xxd at 60, people anywhere.
const wrapWidth = 16

// unwrapped removes the line breaks of wrapped base64 and hex.
func (l *layer) unwrapped() *layer {
	d := decoder{from: l.text}
	run := 0
	for i := 0; i < len(l.text); i++ {
		c := l.text[i]
		if base64Char[c] {
			run++
			continue
		}
		end := lineBreak(l.text, i)
		if run >= wrapWidth && end > i {
			d.replace(i, end)
			i = end - 1
		}
		run = 0
	}
	return d.layer(l)
}

// lineBreak returns the end of the line break at i, or i.
func lineBreak(text []byte, i int) int {
	if i < len(text) && text[i] == '\r' {
		i++
	}
	if i < len(text) && text[i] == '\n' {
		return i + 1
	}
	return i
}
