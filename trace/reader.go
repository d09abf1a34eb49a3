package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
	in     *bufio.Reader
	buf    []byte
	number int64
	offset int64
	// Skipped counts the lines that carried a Problem.
	Skipped int64
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, 256<<10)} }

// Next returns the next line, or io.EOF after the last one.
func (r *Reader) Next() (Line, error) {
	for {
		raw, length, terminated, err := r.readLine()
		if err != nil {
			return Line{}, err
		}
		r.number++
		line := Line{Number: r.number, Offset: r.offset}
		r.offset += length
		if r.number == 1 {
			raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
		}
		if raw == nil {
			line.Problem = fmt.Errorf("line %d: longer than %d bytes", line.Number, MaxLine)
			r.Skipped++
			return line, nil
		}
		raw = bytes.TrimRight(raw, "\r\n")
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		line.Raw = raw
		env, err := ParseLine(raw)
		if err != nil {
			line.Problem = fmt.Errorf("line %d: %w", line.Number, err)
			line.Torn = !terminated
			r.Skipped++
			return line, nil
		}
		line.Envelope = env
		return line, nil
	}
}

// readLine returns the next line with its ending, or nil for one that is too long to keep.
func (r *Reader) readLine() (raw []byte, length int64, terminated bool, err error) {
	r.buf = r.buf[:0]
	tooLong := false
	for {
		chunk, err := r.in.ReadSlice('\n')
		length += int64(len(chunk))
		tooLong = tooLong || length > MaxLine+1
		switch {
		case err == nil:
			return r.finish(chunk, tooLong), length, true, nil
		case errors.Is(err, bufio.ErrBufferFull):
			if !tooLong {
				r.buf = append(r.buf, chunk...)
			}
		case errors.Is(err, io.EOF) && length > 0:
			return r.finish(chunk, tooLong), length, false, nil
		default:
			return nil, 0, false, err
		}
	}
}

func (r *Reader) finish(lastChunk []byte, tooLong bool) []byte {
	if tooLong {
		r.buf = nil // do not keep the memory of a monster
		return nil
	}
	if len(r.buf) == 0 {
		return lastChunk
	}
	r.buf = append(r.buf, lastChunk...)
	return r.buf
}
