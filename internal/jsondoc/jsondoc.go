// Package jsondoc reads JSON documents that may be large, member by member, with the numbers that
// Python writes and JSON does not have.
package jsondoc

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Members calls visit with the name of each member of a JSON object, and a decoder that is at its
// value. A byte order mark is skipped. Bare NaN and Infinity, which Python writes, are null.
func Members(in io.Reader, visit func(name string, decoder *json.Decoder) error) error {
	buffered := bufio.NewReader(in)
	if mark, _ := buffered.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = buffered.Discard(len(byteOrderMark)) // it was there
	}
	decoder := json.NewDecoder(Finite(buffered))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return fmt.Errorf("this is no JSON object: %w", cmp.Or(err, errors.New("it begins with something else")))
	}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("this is not JSON: %w", err)
		}
		name, _ := token.(string)
		if seen[name] {
			return fmt.Errorf("%q is there twice", name)
		}
		seen[name] = true
		if err := visit(name, decoder); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("the document was cut: %w", err)
	}
	return ended(decoder)
}

// ended refuses what follows a document: nobody would see that it was left out.
func ended(decoder *json.Decoder) error {
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows after the end of the JSON document")
	}
	return nil
}

// byteOrderMark stands before some texts.
const byteOrderMark = "\ufeff"

// Elements calls visit with each element of the array that a decoder is at; null has none.
func Elements(decoder *json.Decoder, visit func(raw []byte) error) error {
	token, err := decoder.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('[') {
		return errors.New("this is no array")
	}
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if err := visit(raw); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}

// Finite replaces the numbers that Python writes and JSON does not have, outside of strings, by
// null.
func Finite(in io.Reader) io.Reader { return &finite{in: in} }

type finite struct {
	in       io.Reader
	quoted   bool
	escaping bool
	word     []byte // of a word that is not complete
	ready    []byte
	err      error
}

func (f *finite) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		chunk := make([]byte, max(len(p), 4<<10))
		n, err := f.in.Read(chunk)
		f.ready, f.err = f.replace(chunk[:n], err != nil), err
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// replace goes over a chunk. Outside of strings, words of letters are collected and looked at.
func (f *finite) replace(chunk []byte, last bool) []byte {
	out := make([]byte, 0, len(chunk)+len(f.word))
	flush := func() {
		switch word := string(f.word); word {
		case "NaN", "Infinity", "-Infinity":
			out = append(out, "null"...)
		default:
			out = append(out, word...)
		}
		f.word = f.word[:0]
	}
	for i := 0; i < len(chunk); i++ {
		b := chunk[i]
		if f.quoted {
			if !f.escaping { // skip what cannot end the string
				if j := bytes.IndexAny(chunk[i:], `"\`); j < 0 {
					out = append(out, chunk[i:]...)
					break
				} else if j > 0 {
					out = append(out, chunk[i:i+j]...)
					i += j
					b = chunk[i]
				}
			}
			f.quoted, f.escaping = b != '"' || f.escaping, b == '\\' && !f.escaping
			out = append(out, b)
			continue
		}
		if letter := b|0x20 >= 'a' && b|0x20 <= 'z' || b == '-'; letter && len(f.word) < len("-Infinity") {
			f.word = append(f.word, b)
			continue
		}
		flush()
		f.quoted = b == '"'
		out = append(out, b)
	}
	if last {
		flush()
	}
	return out
}

// Decode is json.Unmarshal for texts of Python.
func Decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if err == nil {
		return nil
	}
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return err
	}
	decoder := json.NewDecoder(Finite(bytes.NewReader(text)))
	if err := decoder.Decode(into); err != nil {
		return err
	}
	return ended(decoder)
}

// Compact returns a text of Python without blanks between its values.
func Compact(text []byte) ([]byte, error) {
	var compact bytes.Buffer
	err := json.Compact(&compact, text)
	if err == nil {
		return compact.Bytes(), nil
	}
	clean, _ := io.ReadAll(Finite(bytes.NewReader(text))) // memory has no errors
	compact.Reset()
	if json.Compact(&compact, clean) != nil {
		return nil, fmt.Errorf("this is not JSON: %w", err)
	}
	return compact.Bytes(), nil
}
