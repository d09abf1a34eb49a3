package trace

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrLongLine is returned for a line that is too long to be read; the lines after it follow.
var ErrLongLine = errors.New("line too long")

const (
	// usualBuffer is the memory that all but the longest lines are read in.
	usualBuffer = 256 << 10
	// maxBuffer is how much of a long line's memory is kept for the next one.
	maxBuffer = 1 << 20
)

// Lines reads a stream line by line in flat memory, without looking into the lines.
type Lines struct {
	Number int64 // of the last line, counted from 1
	Offset int64 // of its first byte in the stream

	in    *bufio.Reader
	limit int
	read  int64  // how much of the stream was handed out
	long  []byte // the pieces of a line that does not fit into the buffer of in
}

// NewLines returns the lines of r. Those of more than limit bytes are refused with ErrLongLine.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{in: bufio.NewReaderSize(r, usualBuffer), limit: limit}
}

// Next returns the next line without the characters that end it, and whether it had a newline;
// after the last one the error is io.EOF. The bytes are valid until the next call.
func (l *Lines) Next() (line []byte, terminated bool, err error) {
	line, length, err := l.assemble()
	if err != nil && (!errors.Is(err, io.EOF) || length == 0) {
		return nil, false, err
	}
	l.Number++
	l.Offset = l.read
	l.read += length
	if length > int64(l.limit)+1 {
		return nil, err == nil, ErrLongLine
	}
	if l.Number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimRight(line, "\r\n"), err == nil, nil
}

// assemble reads until a line is complete. If it is too long, only its length is right.
func (l *Lines) assemble() (line []byte, length int64, err error) {
	if l.long = l.long[:0]; cap(l.long) > maxBuffer {
		l.long = nil
	}
	for {
		piece, err := l.in.ReadSlice('\n')
		whole := length == 0
		length += int64(len(piece))
		full := errors.Is(err, bufio.ErrBufferFull)
		if whole && !full {
			return piece, length, err
		}
		if length <= int64(l.limit)+1 {
			l.long = append(l.long, piece...)
		}
		if !full {
			return l.long, length, err
		}
	}
}
