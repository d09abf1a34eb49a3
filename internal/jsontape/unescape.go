package jsontape

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends the text of a string whose first backslash is known. Anything that is not an
// escape stays as it is.
func unescape(dst, raw []byte, first int) []byte {
	dst = append(dst, raw[:first]...)
	for raw = raw[first:]; len(raw) > 0; {
		var size int
		dst, size = appendEscape(dst, raw)
		raw = raw[size:]
		next := bytes.IndexByte(raw, '\\')
		if next < 0 {
			next = len(raw)
		}
		dst = append(dst, raw[:next]...)
		raw = raw[next:]
	}
	return dst
}

// escapes are the characters that escapes of one letter stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendEscape appends what the escape at the beginning of raw stands for, and returns how long it
// was. A string cannot end in a lone backslash.
func appendEscape(dst, raw []byte) ([]byte, int) {
	if plain := escapes[raw[1]]; plain != 0 {
		return append(dst, plain), 2
	}
	r, ok := UnicodeEscape(raw)
	if !ok {
		return append(dst, raw[:2]...), 2
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), 6
	}
	second, ok := UnicodeEscape(raw[6:])
	if !ok {
		return append(dst, raw[:6]...), 6
	}
	return utf8.AppendRune(dst, utf16.DecodeRune(r, second)), 12
}

// UnicodeEscape reads the escape with four hexadecimal digits, such as \u00e4, that b begins with.
// A half of a pair of surrogates is returned as it is.
func UnicodeEscape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
