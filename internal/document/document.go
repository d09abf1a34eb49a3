// Package document reads YAML (and so JSON) files that people write, and says where in the file
// something is wrong.
//
//  1. Parse turns bytes into a Document, or reports a syntax error with its place.
//  2. Conforms checks it against the JSON Schema of a Go struct; every problem becomes an Error at
//     the line and column of the value it is about.
//  3. Decode fills the struct.
//
// Load and Read do all three.
//
// It is the only package that knows the YAML library.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Document is a parsed file.
type Document struct {
	name   string
	source []byte
	line   int // how many lines of the file come before the document
	root   *yaml.Node
}

// Error is one thing that is wrong with a file.
type Error struct {
	File string
	Line int // counted from 1; 0 if unknown
	Col  int
	Msg  string
	// Excerpt is the line in question, for people.
	Excerpt string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	default:
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
	}
}

// Caret shows the line with a mark under the column, or nothing if the position is unknown or the
// line is long.
func (e *Error) Caret() string {
	if e.Line == 0 || e.Col == 0 || strings.TrimSpace(e.Excerpt) == "" || len(e.Excerpt) > longestExcerpt {
		return ""
	}
	under := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string([]rune(e.Excerpt)[:min(e.Col-1, utf8.RuneCountInString(e.Excerpt))]))
	return e.Excerpt + "\n" + under + "^"
}

// Load reads a file, checks it against the schema of a struct, and fills the struct that into
// points to. What names the content of the file, for the error if it cannot be read.
func Load(what, path string, into any) (*Document, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return Read(path, source, into)
}

// Read is Load for a file whose content is known. The name is used in errors only.
func Read(name string, source []byte, into any) (*Document, error) {
	d, err := Parse(name, source)
	if err == nil {
		err = d.Fill(into)
	}
	return d, err
}

// Fill checks a document against the schema of the struct that into points to, and fills that.
func (d *Document) Fill(into any) error {
	if err := d.Conforms(into); err != nil {
		return err
	}
	return d.Decode(into)
}

// Parse reads one YAML document. The name is used in errors only.
func Parse(name string, source []byte) (*Document, error) { return parseAt(name, source, 0) }

// parseAt reads a YAML document that begins after some lines of a larger file, so that errors name
// the file's lines.
func parseAt(name string, source []byte, linesBefore int) (*Document, error) {
	d := &Document{name: name, source: source, line: linesBefore}
	if len(source) > maxSource {
		return nil, d.at(1, 1, "the document is larger than %d bytes", maxSource)
	}
	if line, col := invalidUTF8(source); line > 0 {
		return nil, d.at(line, col, "the file is not valid UTF-8")
	}
	var root, further yaml.Node
	reader := yaml.NewDecoder(bytes.NewReader(source))
	if err := reader.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, d.located(err)
	}
	// What follows would be ignored. A syntax error in it is one, and so is another document.
	switch err := reader.Decode(&further); {
	case err == nil && !isNull(&further):
		return nil, d.at(further.Line, further.Column, "a second document begins here; write only one")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, d.located(err)
	}
	if err := d.bounded(&root); err != nil {
		return nil, err
	}
	d.root = &root
	return d, nil
}

// invalidUTF8 returns where a file is not UTF-8; 0 if it is.
func invalidUTF8(source []byte) (line, col int) {
	line = 1
	for rest := source; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		col++
		switch {
		case r == utf8.RuneError && size == 1:
			return line, col
		case r == '\n':
			line, col = line+1, 0
		}
		rest = rest[size:]
	}
	return 0, 0
}

// Empty reports whether the document has only blanks and comments.
func (d *Document) Empty() bool {
	return isNull(d.root)
}

// isNull reports whether a document has nothing in it.
func isNull(root *yaml.Node) bool {
	return root.Kind == 0 || len(root.Content) == 0 ||
		root.Content[0].Kind == yaml.ScalarNode && root.Content[0].Tag == "!!null"
}

// Decode fills a Go value. Fields that it does not know are ignored: Conforms decides what is
// allowed.
func (d *Document) Decode(into any) error {
	if d.Empty() {
		return nil
	}
	if err := d.root.Decode(into); err != nil {
		return d.located(err)
	}
	return nil
}

// located turns an error of the YAML library into ours, with its place in the file.
func (d *Document) located(err error) error {
	if several, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		var all []error
		for _, one := range several.Errors[:min(len(several.Errors), maxProblems)] {
			all = append(all, d.at(one.Mark.Line, one.Mark.Column, "%s", inWords(one.Message)))
		}
		return errors.Join(all...)
	}
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		return d.at(one.Mark.Line, one.Mark.Column, "%s", inWords(one.Message))
	}
	return &Error{File: d.name, Msg: err.Error()}
}

// inWords says for those who write a file what the library says for those who write parsers.
func inWords(message string) string {
	switch message {
	case "found unexpected end of stream":
		return "the file ends inside a text in quotes; close it"
	case "did not find expected ',' or '}'":
		return "a mapping in braces is not closed: a comma or } is missing before this"
	case "did not find expected ',' or ']'":
		return "a list in brackets is not closed: a comma or ] is missing before this"
	case "found character that cannot start any token":
		return "no value begins with this character; indent with spaces, and put a text with it into quotes"
	case "mapping values are not allowed in this context":
		return "there is no place for a colon here; indent as the line above, or put the text into quotes"
	case "could not find expected ':'":
		return "a colon is missing after the key"
	case "did not find expected node content":
		return "a value is missing, or brackets are not closed before this"
	case "did not find expected '-' indicator":
		return "a dash was expected; indent as the items above"
	case "did not find expected key":
		return "a key was expected; indent as the lines above"
	}
	return message
}

// at makes an error at a place of the document.
func (d *Document) at(line, col int, format string, args ...any) *Error {
	if line < 1 {
		return &Error{File: d.name, Msg: fmt.Sprintf(format, args...)}
	}
	return &Error{
		File:    d.name,
		Line:    line + d.line,
		Col:     max(col, 1),
		Msg:     fmt.Sprintf(format, args...),
		Excerpt: d.excerpt(line),
	}
}

func (d *Document) excerpt(line int) string {
	for text := range bytes.Lines(d.source) {
		if line--; line == 0 {
			return string(bytes.TrimRight(text, "\r\n"))
		}
	}
	return ""
}
