package foreign

import (
	"archive/zip"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fit-eval/fit/internal/document"
)

// inWords says for those who have a file what libraries say for those who write programs.
func inWords(err error, format string) error {
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is a %s: fit does not know this version of the format %s",
			cmp.Or(typed.Field, "a value"), typed.Value, format)
	}
	if broken, ok := errors.AsType[*csv.ParseError](err); ok {
		words := "a quote stands in the middle of a cell: put the cell into quotes, and write the quote twice"
		if errors.Is(broken.Err, csv.ErrQuote) {
			words = "a cell that begins with a quote must end with one: write a quote within it twice"
		}
		return fmt.Errorf("line %d: %s", broken.Line, words)
	}
	for _, known := range []struct {
		err   error
		words string
	}{
		{io.ErrUnexpectedEOF, "it ends too early"},
		{io.EOF, "it ends too early"},
		{zip.ErrChecksum, "it is damaged: its content is not what was packed"},
		{zip.ErrAlgorithm, "it is packed in a way that fit does not know"},
		{zip.ErrFormat, "it is damaged"},
	} {
		if where, last := strings.CutSuffix(err.Error(), known.err.Error()); last && errors.Is(err, known.err) {
			return errors.New(where + known.words)
		}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if where, last := strings.CutSuffix(err.Error(), syntax.Error()); last {
			return errors.New(where + document.SyntaxWords(syntax))
		}
	}
	return err
}
