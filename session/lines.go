package session

import (
	"bytes"
	"errors"
	"io"
)

// errLongLine is returned for a line that is too long to be read; the lines after it follow.
var errLongLine = errors.New("line too long")

const (
	// readAtOnce is how much is asked of the input at a time.
	readAtOnce = 128 << 10
	// usualBuffer is the memory that all but the longest lines are read in.
	usualBuffer = 2 * readAtOnce
	// maxBuffer is the memory of a long line that is held on to for the next one.
	maxBuffer = 1 << 20
	// maxEmptyReads is how often an input may give nothing, not even an error, before it is given
	// up.
	maxEmptyReads = 100
)

// lineReader reads lines in flat memory without looking into them.
type lineReader struct {
	in         io.Reader
	buf        []byte
	start, end int   // what of the buffer was read and not handed out yet
	err        error // how the input ended
	limit      int
	number     int64
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{in: r, buf: make([]byte, usualBuffer), limit: limit}
}

// next returns the next line and its number, counted from 1, without the characters that end it.
// The bytes are valid until the next call.
func (r *lineReader) next() ([]byte, int64, error) {
	if n := bytes.IndexByte(r.buf[r.start:r.end], '\n'); n >= 0 && n <= r.limit {
		line := r.buf[r.start : r.start+n]
		r.start += n + 1
		return r.finished(line), r.number, nil
	}
	line, err := r.assemble()
	if err != nil && !errors.Is(err, errLongLine) {
		return nil, 0, err
	}
	return r.finished(line), r.number, err
}

// finished counts a line and drops what does not belong to it.
func (r *lineReader) finished(line []byte) []byte {
	if r.number++; r.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	for len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line
}

// assemble reads on until the line that has begun in the buffer is complete, or too long.
func (r *lineReader) assemble() ([]byte, error) {
	seen := 0 // what of the line was searched for its end
	tooLong := false
	for {
		n := bytes.IndexByte(r.buf[r.start+seen:r.end], '\n')
		switch {
		case n >= 0:
			line := r.buf[r.start : r.start+seen+n]
			r.start += seen + n + 1
			if tooLong || len(line) > r.limit {
				return nil, errLongLine
			}
			return line, nil
		case r.err != nil:
			line := r.buf[r.start:r.end]
			r.start = r.end
			if !errors.Is(r.err, io.EOF) || (len(line) == 0 && !tooLong) {
				return nil, r.err
			}
			if tooLong || len(line) > r.limit+1 {
				return nil, errLongLine
			}
			return line, nil
		}
		if seen = r.end - r.start; seen > r.limit+1 {
			tooLong, seen, r.start = true, 0, r.end // nothing of it will be asked for
		}
		r.fill()
	}
}

// fill reads more into the buffer, in which it makes room for it.
func (r *lineReader) fill() {
	kept := r.end - r.start
	size := len(r.buf)
	switch {
	case kept < readAtOnce && size > maxBuffer:
		size = usualBuffer
	case size-kept < readAtOnce:
		size = min(2*size, r.limit+2+readAtOnce) // of a line that is not too long there is never more
	}
	if buf := r.buf; size != len(buf) || r.start > 0 {
		if size != len(buf) {
			buf = make([]byte, size)
		}
		copy(buf, r.buf[r.start:r.end])
		r.buf, r.start, r.end = buf, 0, kept
	}
	for range maxEmptyReads {
		n, err := r.in.Read(r.buf[kept:min(len(r.buf), kept+readAtOnce)])
		r.end, r.err = kept+n, err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
