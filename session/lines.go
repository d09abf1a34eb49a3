package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errLongLine is returned for a line that is too long to be read; the lines after it follow.
var errLongLine = errors.New("line too long")

// lineReader reads lines in flat memory without looking into them.
type lineReader struct {
	in     *bufio.Reader
	buf    []byte
	limit  int
	number int64
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 256<<10), limit: limit}
}

// next returns the next line and its number, counted from 1. The bytes are valid until the next call.
func (r *lineReader) next() ([]byte, int64, error) {
	if cap(r.buf) > 1<<20 {
		r.buf = nil // do not hold on to the memory of one huge line
	}
	r.buf = r.buf[:0]
	tooLong, length := false, 0
	for {
		chunk, err := r.in.ReadSlice('\n')
		length += len(chunk)
		tooLong = tooLong || length > r.limit+1
		if errors.Is(err, bufio.ErrBufferFull) {
			if !tooLong {
				r.buf = append(r.buf, chunk...)
			}
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || length == 0) {
			return nil, 0, err
		}
		r.number++
		switch {
		case tooLong:
			r.buf = nil
			return nil, r.number, errLongLine
		case len(r.buf) > 0:
			r.buf = append(r.buf, chunk...)
			chunk = r.buf
		}
		if r.number == 1 {
			chunk = bytes.TrimPrefix(chunk, []byte("\xef\xbb\xbf"))
		}
		for len(chunk) > 0 && (chunk[len(chunk)-1] == '\n' || chunk[len(chunk)-1] == '\r') {
			chunk = chunk[:len(chunk)-1]
		}
		return chunk, r.number, nil
	}
}
