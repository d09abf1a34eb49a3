package gateway

import (
	"bytes"
	"io"
)

// hiding removes the key from a stream. It holds back only what may be the beginning of the key.
type hiding struct {
	from    io.Reader
	secrets [][]byte
	read    []byte // and not yet looked at to its end
	ready   []byte
	err     error
}

// hiding returns a stream of the upstream without the key.
func (u upstream) hiding(stream io.Reader) io.Reader {
	h := &hiding{from: stream}
	for _, secret := range u.secrets() {
		h.secrets = append(h.secrets, []byte(secret))
	}
	if len(h.secrets) == 0 {
		return stream
	}
	return h
}

// Read implements io.Reader.
func (h *hiding) Read(p []byte) (int, error) {
	for len(h.ready) == 0 {
		if h.err != nil {
			return 0, h.err
		}
		n, err := h.from.Read(p)
		h.err = err
		if n > 0 && len(h.read) == 0 && err == nil && h.clean(p[:n]) {
			return n, nil // nearly always
		}
		h.read = append(h.read, p[:n]...)
		for _, secret := range h.secrets {
			if bytes.Contains(h.read, secret) {
				h.read = bytes.ReplaceAll(h.read, secret, []byte(hiddenKey))
			}
		}
		held := 0
		if err == nil {
			held = h.begun(h.read)
		}
		h.ready, h.read = h.read[:len(h.read)-held], bytes.Clone(h.read[len(h.read)-held:])
	}
	n := copy(p, h.ready)
	if h.ready = h.ready[n:]; len(h.ready) == 0 {
		h.ready = nil // a stream may be silent for long
	}
	return n, nil
}

// clean reports whether a piece contains no part of the key.
func (h *hiding) clean(piece []byte) bool {
	for _, secret := range h.secrets {
		if bytes.Contains(piece, secret) {
			return false
		}
	}
	return h.begun(piece) == 0
}

// begun returns how much of the end of a piece may be the beginning of the key.
func (h *hiding) begun(piece []byte) int {
	longest := 0
	for _, secret := range h.secrets {
		for n := min(len(secret)-1, len(piece)); n > longest; n-- {
			if bytes.HasSuffix(piece, secret[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}
