package scan

import (
	"bytes"
	"errors"
	"io"

	"github.com/fit-eval/fit/trace"
)

// blockSize is how much is read at a time: small enough to stay in a core's cache while it is
// scanned, large enough to make the calls cheap.
const blockSize = 1 << 20

// block is a run of whole lines.
type block struct {
	data    []byte
	offset  int64 // of the first byte in the stream
	tooLong bool  // it is one line beyond trace.MaxLine, whose data is dropped
}

// Blocks cuts a stream into blocks that end at newlines. The part of a line at the end of one read
// is carried to the front of the next.
type Blocks struct {
	in     io.Reader
	offset int64
	lines  int64 // before the first block
	carry  []byte
	ended  bool
	// limit is the number of bytes to read; a file that grows meanwhile is read as it was when it
	// was opened. Negative means to the end.
	limit int64
}

// NewBlocks reads the first limit bytes of a stream, all of it if limit is negative.
func NewBlocks(in io.Reader, limit int64) *Blocks { return &Blocks{in: in, limit: limit} }

// After says how many bytes and lines come before what is read.
func (r *Blocks) After(bytes, lines int64) *Blocks {
	r.offset, r.lines = bytes, lines
	return r
}

// next fills buf, which it may replace with a larger one, and returns the block in it; io.EOF after
// the last one.
func (r *Blocks) next(buf []byte) (block, []byte, error) {
	if r.ended && len(r.carry) == 0 {
		return block{}, buf, io.EOF
	}
	size := blockSize
	if r.limit >= 0 && r.limit < blockSize && r.offset == 0 {
		size = int(r.limit) + 1 // a small file needs no large buffer
	}
	if cap(buf) < size || cap(buf) > 8*blockSize && len(r.carry) < blockSize {
		buf = make([]byte, max(size, len(r.carry)))
	}
	buf = append(buf[:0], r.carry...)
	r.carry = r.carry[:0]
	searched := 0
	for {
		var err error
		buf, err = r.fill(buf)
		if err != nil {
			return block{}, buf, err
		}
		if end := bytes.LastIndexByte(buf[searched:], '\n'); end >= 0 {
			return r.cut(buf, searched+end+1), buf, nil
		}
		searched = len(buf)
		switch {
		case r.ended && len(buf) == 0:
			return block{}, buf, io.EOF
		case r.ended:
			b := block{data: buf, offset: r.offset}
			r.offset += int64(len(buf))
			return b, buf, nil
		case len(buf) > trace.MaxLine:
			b, err := r.pass(int64(len(buf)))
			return b, nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
	}
}

// fill reads until the buffer is full or the stream ends.
func (r *Blocks) fill(buf []byte) ([]byte, error) {
	for len(buf) < cap(buf) && !r.ended {
		space := buf[len(buf):cap(buf)]
		if r.limit >= 0 && int64(len(space)) > r.limit {
			space = space[:r.limit]
		}
		n, err := r.in.Read(space)
		buf = buf[:len(buf)+n]
		if r.limit >= 0 {
			r.limit -= int64(n)
			r.ended = r.limit == 0
		}
		switch {
		case errors.Is(err, io.EOF):
			r.ended = true
		case err != nil:
			return buf, err
		}
	}
	return buf, nil
}

// cut keeps what follows the last newline for the next block.
func (r *Blocks) cut(buf []byte, end int) block {
	b := block{data: buf[:end], offset: r.offset}
	r.carry = append(r.carry[:0], buf[end:]...)
	r.offset += int64(end)
	return b
}

// pass skips the rest of a line that is too long to keep.
func (r *Blocks) pass(length int64) (block, error) {
	b := block{offset: r.offset, tooLong: true}
	buf := make([]byte, 0, blockSize)
	for {
		var err error
		if buf, err = r.fill(buf[:0]); err != nil {
			return block{}, err
		}
		if end := bytes.IndexByte(buf, '\n'); end >= 0 {
			length += int64(end) + 1
			r.carry = append(r.carry[:0], buf[end+1:]...)
			break
		}
		length += int64(len(buf))
		if r.ended {
			break
		}
	}
	r.offset += length
	return b, nil
}
