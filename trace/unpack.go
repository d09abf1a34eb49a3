package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxUnpackMemory bounds what a packed file may make its reader allocate.
const maxUnpackMemory = 256 << 20

// Packed reports whether a file with these first bytes is packed with gzip or zstd; its name does
// not matter.
func Packed(head []byte) bool { return isGzip(head) || isZstd(head) }

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

func isZstd(head []byte) bool { return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) }

// Unpack reads a stream that may be packed with gzip or zstd as if it were not. The function it
// returns releases the reader's resources. A packed stream that was cut off ends as a plain one
// would, so that the rest can be read; its torn last line shows the cut.
func Unpack(in *bufio.Reader) (io.Reader, func(), error) {
	head, _ := in.Peek(4) // a shorter stream is not packed
	switch {
	case isGzip(head):
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, err
		}
		return &tolerant{in: unpacked}, func() { _ = unpacked.Close() }, nil
	case isZstd(head):
		unpacked, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(maxUnpackMemory))
		if err != nil {
			return nil, nil, err
		}
		return &tolerant{in: unpacked}, unpacked.Close, nil
	}
	return in, func() {}, nil
}

type tolerant struct{ in io.Reader }

func (t *tolerant) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
