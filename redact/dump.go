package redact

import (
	"bytes"
	"html"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// dumpLine is a line of a hex dump: an offset, bytes, and the same bytes as text.
var dumpLine = lazyregexp.New(`(?im)(?:^|[^0-9a-z])([0-9a-f]{6,16}:?)((?: {1,2}(?:[0-9a-f]{2}){1,4})+)(?: {2,}[^\r\n]*)?(?:\r?\n|$)`)

// undumped removes everything from hex dumps except their digits.
func (l *layer) undumped() *layer {
	d := decoder{from: l.text}
	for _, line := range dumpLine.Get().FindAllSubmatchIndex(l.text, -1) {
		start, from, to, end := line[2], line[4], line[5], line[1]
		d.replace(start, from)
		for i := from; i < to; i++ {
			if l.text[i] == ' ' {
				d.replace(i, i+1)
			}
		}
		d.replace(to, end)
	}
	return d.layer(l)
}

// endOfDumpLine returns the end of the line that i is in, where its bytes are repeated as text.
func endOfDumpLine(text []byte, i int) int {
	const longest = 72 // fifteen bytes with blanks, and the column of text
	rest := text[i:min(len(text), i+longest)]
	if n := bytes.IndexByte(rest, '\n'); n >= 0 {
		return i + n
	}
	return i + len(rest)
}

// withoutEntities decodes the character references of HTML.
func (l *layer) withoutEntities() *layer {
	if bytes.IndexByte(l.text, '&') < 0 {
		return nil
	}
	d := decoder{from: l.text}
	for _, at := range entity.Get().FindAllIndex(l.text, -1) {
		plain := html.UnescapeString(string(l.text[at[0]:at[1]]))
		if len(plain) < at[1]-at[0] {
			d.replace(at[0], at[1], []byte(plain)...)
		}
	}
	return d.layer(l)
}

var entity = lazyregexp.New(`&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);`)
