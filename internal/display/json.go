package display

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON escapes characters of a JSON document that a terminal would interpret or hide. They can only
// be in its strings, so the document's value stays the same; bytes that are not UTF-8 become the
// replacement character, as in decoders. A document that needs no escape is returned unchanged.
func JSON(document []byte) []byte {
	i := unsafeInJSON(document)
	if i < 0 {
		return document
	}
	var out bytes.Buffer
	for rest := document; ; i = unsafeInJSON(rest) {
		if i < 0 {
			out.Write(rest)
			return out.Bytes()
		}
		out.Write(rest[:i])
		r, size := utf8.DecodeRune(rest[i:])
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		} else {
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		rest = rest[i+size:]
	}
}

// unsafeInJSON finds the first character to escape, or -1.
func unsafeInJSON(document []byte) int {
	for i := 0; i < len(document); {
		c := document[i]
		if c < utf8.RuneSelf {
			if c == 0x7f || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(document[i:])
		if r == utf8.RuneError && size == 1 || !isSafe(r) {
			return i
		}
		i += size
	}
	return -1
}
