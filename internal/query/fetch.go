package query

import (
	"errors"
	"io"

	"github.com/fit-eval/fit/internal/query/internal/scan"
)

// errChanged means that a line is no longer where it was.
var errChanged = errors.New("the trace has changed while it was read")

// lineFetcher reads single lines of a trace. Neighbouring lines come out of one read.
type lineFetcher struct {
	file    io.ReaderAt
	size    int64
	scanner scan.LineScanner
	buf     []byte
	start   int64 // of buf in the file
	last    int64 // where the line before ends
	ev      scan.Event
	parts   []scan.Part
}

// A line close to the one before is taken for the next of many, and one read gets as many as fit.
const (
	fetchNear  = 4 << 10
	fetchAhead = 64 << 10
)

func (f *lineFetcher) fetch(offset int64, length int) (*scan.Event, error) {
	end := offset + int64(length)
	if end > f.size {
		return nil, errChanged
	}
	if offset < f.start || end > f.start+int64(len(f.buf)) {
		n := int64(length)
		if gap := offset - f.last; gap >= 0 && gap <= fetchNear {
			n = min(max(n, fetchAhead), f.size-offset)
		}
		if int64(cap(f.buf)) < n {
			f.buf = make([]byte, n)
		}
		f.buf, f.start = f.buf[:n], offset
		if _, err := f.file.ReadAt(f.buf, offset); err != nil {
			return nil, errChanged
		}
	}
	f.last = end
	from := int(offset - f.start)
	f.parts, f.ev = f.parts[:0], scan.Event{Offset: offset}
	if !f.scanner.Scan(f.buf[from:from+length], &f.ev, &f.parts) {
		return nil, errChanged
	}
	return &f.ev, nil
}
