package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// DecodeJSON fills a Go value from JSON that a person wrote. It is strict where leniency would hide
// a mistake: fields that the value does not have, two members of one name, bytes that are not UTF-8
// and anything after the document are errors, each an *Error with its place in the file.
func DecodeJSON(name string, source []byte, into any) error {
	d := &Document{name: name, source: source}
	if err := d.checkJSON(); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return d.typeError(err, decoder.InputOffset())
	}
	return nil
}

// JSONValue decodes one JSON value of any kind as strictly as DecodeJSON. Numbers are json.Number.
func JSONValue(source []byte) (any, error) {
	d := &Document{source: source}
	if err := d.checkJSON(); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, d.typeError(err, decoder.InputOffset())
	}
	return value, nil
}

// typeError returns why a JSON document does not fit the value it is decoded into.
func (d *Document) typeError(err error, offset int64) error {
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("want %s, got %s", typeName(wrongType.Type.Kind()), wrongType.Value)
		if wrongType.Field != "" {
			err = fmt.Errorf("%s: %w", wrongType.Field, err)
		}
		return d.atOffset(wrongType.Offset, err)
	}
	message := strings.TrimPrefix(err.Error(), "json: ")
	if field, ok := strings.CutPrefix(message, "unknown field "); ok {
		message = "there is no field " + field
		offset = int64(bytes.Index(d.source, []byte(field))) + 1
	}
	return d.atOffset(offset, errors.New(message))
}

func typeName(kind reflect.Kind) string {
	switch kind {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}

// checkJSON reports what is wrong with a text whatever it is decoded into.
func (d *Document) checkJSON() error {
	if !utf8.Valid(d.source) {
		return &Error{File: d.name, Msg: "the file is not valid UTF-8"}
	}
	decoder := json.NewDecoder(bytes.NewReader(d.source))
	decoder.UseNumber()
	if err := d.uniqueNames(decoder, 1); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return d.atOffset(decoder.InputOffset(), errors.New("there is something after the end of the document"))
	}
	return nil
}

// uniqueNames reads one value and reports two members of one name in it.
func (d *Document) uniqueNames(decoder *json.Decoder, depth int) error {
	token, err := decoder.Token()
	if err != nil {
		return d.syntax(decoder, err)
	}
	open, isDelim := token.(json.Delim)
	if !isDelim {
		return nil
	}
	if depth > maxDepth {
		return d.atOffset(decoder.InputOffset(), errTooDeep)
	}
	seen := map[string]bool{}
	for decoder.More() {
		if open == '{' {
			key, err := decoder.Token()
			if err != nil {
				return d.syntax(decoder, err)
			}
			name, _ := key.(string)
			if seen[name] {
				return d.atOffset(decoder.InputOffset(), fmt.Errorf("there are two members %q", name))
			}
			seen[name] = true
		}
		if err := d.uniqueNames(decoder, depth+1); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil { // the closing bracket
		return d.syntax(decoder, err)
	}
	return nil
}

// syntax places an error of the tokenizer.
func (d *Document) syntax(decoder *json.Decoder, err error) error {
	offset := decoder.InputOffset()
	switch syntax, ok := errors.AsType[*json.SyntaxError](err); {
	case ok:
		offset, err = syntax.Offset, errors.New(SyntaxWords(syntax))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		offset, err = int64(len(d.source)), errors.New("the document ends too early")
	}
	return d.atOffset(offset, err)
}

// atOffset makes an error at the character before an offset, which is where decoders stop.
func (d *Document) atOffset(offset int64, err error) error {
	before := d.source[:max(0, min(offset, int64(len(d.source)))-1)]
	line := bytes.Count(before, []byte("\n")) + 1
	col := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return d.at(line, col, "%s", err)
}

// syntaxWords are the ends of messages about JSON, in the words of those who write it.
var syntaxWords = strings.NewReplacer(
	"invalid character", "unexpected",
	"looking for beginning of value", "where a value begins",
	"looking for beginning of object key string", "where a key in double quotes begins",
	"after object key:value pair", "after a member, where a comma or } is missing",
	"after object key", "after a key, where a colon is missing",
	"after array element", "after an element, where a comma or ] is missing",
	"after top-level value", "after the end of the value",
	"unexpected end of JSON input", "the document ends too early",
)

// SyntaxWords says what is wrong with JSON. Other errors are left as they are.
func SyntaxWords(err error) string {
	if _, broken := errors.AsType[*json.SyntaxError](err); !broken {
		return err.Error()
	}
	return syntaxWords.Replace(err.Error())
}
