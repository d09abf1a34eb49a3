package jsontape

import (
	"bytes"
	"strings"
)

// Inner returns the text between the quotes of a string, escapes included; nil for any other value.
// Unlike Text it is part of the text itself, and valid as long as that is.
func (v Value) Inner() []byte {
	if v.Kind() != String {
		return nil
	}
	n := v.node()
	return v.p.text[n.start:n.end:n.end]
}

// Unescape returns the text of a string, given what is between its quotes. Bytes that are not UTF-8
// become U+FFFD.
func Unescape(inner []byte) string {
	first := bytes.IndexByte(inner, '\\')
	if first < 0 {
		return strings.ToValidUTF8(string(inner), "\uFFFD")
	}
	return strings.ToValidUTF8(string(unescape(nil, inner, first)), "\uFFFD")
}
