package calls

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// fileHead is how every record begins.
const fileHead = "fit calls 1\n"

// The kinds of frames.
const (
	kindCall   = 'C'
	kindChunks = 'B'
	kindPlace  = 'P'
)

const (
	// frameMark begins every frame. It is not UTF-8, so that no JSON in the file contains it.
	frameMark  = "\xf1\xc4\xa5"
	headLength = 16
	// maxFrame bounds what a frame may make a reader allocate.
	maxFrame = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is the head of a frame.
type frame struct {
	kind   byte
	length uint32 // of the payload
	sum    uint32 // of the payload
}

// appendFrame adds a whole frame to a buffer.
func appendFrame(dst []byte, kind byte, payload []byte) []byte {
	start := len(dst)
	dst = append(append(dst, frameMark...), kind)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(payload, castagnoli))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	return append(dst, payload...)
}

// parseHead reads the head of a frame, which is good if its own checksum is.
func parseHead(head []byte) (frame, bool) {
	if len(head) < headLength || string(head[:len(frameMark)]) != frameMark ||
		crc32.Checksum(head[:12], castagnoli) != binary.LittleEndian.Uint32(head[12:]) {
		return frame{}, false
	}
	f := frame{
		kind:   head[len(frameMark)],
		length: binary.LittleEndian.Uint32(head[4:]),
		sum:    binary.LittleEndian.Uint32(head[8:]),
	}
	return f, f.length <= maxFrame
}

// fits reports whether a payload is what was written.
func (f frame) fits(payload []byte) bool {
	return len(payload) == int(f.length) && crc32.Checksum(payload, castagnoli) == f.sum
}

// nextHead finds the next good head in a text and returns its position, or -1.
func nextHead(text []byte) int {
	for at := 0; ; at++ {
		found := bytes.Index(text[at:], []byte(frameMark))
		if found < 0 {
			return -1
		}
		at += found
		if _, ok := parseHead(text[at:]); ok {
			return at
		}
	}
}
