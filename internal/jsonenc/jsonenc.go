// Package jsonenc writes JSON the way every file and every command of fit does: <, > and & stay as
// they are, because escaping them makes traces and reports hard to read and to search, and bytes
// that are not UTF-8 become U+FFFD.
package jsonenc

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// Marshal encodes a value on one line, without a newline at the end.
func Marshal(value any) ([]byte, error) {
	var buf bytes.Buffer
	if err := Write(&buf, value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Write writes a value as one line.
func Write(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// WriteIndented writes a value for people to read, with two spaces a level and a newline at the
// end.
func WriteIndented(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// String returns a text as a JSON string.
func String(s string) string { return string(AppendString(nil, s)) }

// AppendString appends a JSON string to b. It writes what Marshal writes for a string.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for {
		n := plainPrefix(s)
		b = append(b, s[:n]...)
		if n == len(s) {
			return append(b, '"')
		}
		s = s[n:]
		if c := s[0]; c < utf8.RuneSelf {
			b = appendEscaped(b, c)
			s = s[1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(b, `\ufffd`...)
		case r == '\u2028' || r == '\u2029': // valid JSON, but line ends to some readers
			b = append(append(b, `\u202`...), hexDigits[r&0xf])
		default:
			b = append(b, s[:size]...)
		}
		s = s[size:]
	}
}

// plainPrefix returns how many bytes s begins with that stand for themselves in a JSON string and
// are ASCII. It looks at eight at a time, because most texts consist of nothing else.
func plainPrefix(s string) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		e := s[i : i+8]
		x := uint64(e[0]) | uint64(e[1])<<8 | uint64(e[2])<<16 | uint64(e[3])<<24 |
			uint64(e[4])<<32 | uint64(e[5])<<40 | uint64(e[6])<<48 | uint64(e[7])<<56
		// A high bit shows where a byte is below a space, equal to one of the two, or not ASCII;
		// where none shows, there is none.
		low, quote, backslash := x-ones*' ', (x^ones*'"')-ones, (x^ones*'\\')-ones
		if (low|quote|backslash|x)&highs != 0 {
			break
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

const hexDigits = "0123456789abcdef"

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}
