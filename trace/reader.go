package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine is the longest line that is kept; longer ones are skipped and counted.
const MaxLine = 64 << 20

// Line is one line of a trace, good or bad: a bad line is a record with a Problem, not the end of
// the file.
type Line struct {
	Envelope
	Number int64 // counted from 1
	Offset int64 // of its first byte in the file
	// Raw is the line without its line ending. The bytes are valid until the next call of Next.
	Raw []byte
	// Problem says why the line could not be used; the envelope is empty then.
	Problem error
	// Torn is true for a last line without newline that is not whole: its writer was cut off, or is
	// still writing.
	Torn bool
}

// Reader reads a trace line by line in flat memory. Blank lines are passed over.
type Reader struct {
	lines *Lines
	// Skipped counts the lines that carried a Problem.
	Skipped int64
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{lines: NewLines(r, MaxLine)} }

// All iterates over the lines that are left. It ends after the first error.
func (r *Reader) All() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for {
			line, err := r.Next()
			if err == io.EOF || !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the next line, or io.EOF after the last one.
func (r *Reader) Next() (Line, error) {
	for {
		raw, terminated, err := r.lines.Next()
		line := Line{Number: r.lines.Number, Offset: r.lines.Offset}
		switch {
		case errors.Is(err, ErrLongLine):
			line.Problem = fmt.Errorf("line %d: longer than %d bytes", line.Number, MaxLine)
			r.Skipped++
			return line, nil
		case err != nil:
			return Line{}, err
		case len(bytes.TrimSpace(raw)) == 0:
			continue
		}
		line.Raw = raw
		if line.Envelope, err = ParseLine(raw); err != nil {
			line.Problem, line.Torn = fmt.Errorf("line %d: %w", line.Number, err), !terminated
			r.Skipped++
		}
		return line, nil
	}
}
