// Package jsonenc writes JSON the way every file and every command of fit does: <, > and & stay as
// they are, because escaping them makes traces and reports hard to read and to search, and bytes
// that are not UTF-8 become U+FFFD.
package jsonenc

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
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
// end. Characters that a terminal would interpret or hide are escaped.
func WriteIndented(w io.Writer, value any) error {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(display.JSON(buf.Bytes()))
	return err
}

// String returns a text as a JSON string.
func String(s string) string { return string(AppendString(nil, s)) }

// AppendString appends a JSON string to b. It writes what Marshal writes for a string.
func AppendString(b []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, _ := Marshal(s) // a string always marshals
	return append(b, quoted...)
}

// isPlain reports whether every byte stands for itself in a JSON string and is ASCII.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
