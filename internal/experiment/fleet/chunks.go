package fleet

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// chunkSize is the size of the messages that a file is sent in.
const (
	chunkSize  = 128 << 10
	chunkSlack = 4 << 10 // of a message besides its content
)

// stalledAfter is how long one chunk may take.
const stalledAfter = 20 * time.Second

// chunks reads a file that is stored as messages with one subject.
type chunks struct {
	ctx     context.Context
	stream  jetstream.Stream
	subject string
	left    int64 // bytes that are not read
	next    uint64
	rest    []byte
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.left <= 0 {
			return 0, io.EOF
		}
		ctx, cancel := context.WithTimeout(c.ctx, stalledAfter)
		defer cancel()
		message, err := c.stream.GetMsg(ctx, max(c.next, 1), jetstream.WithGetMsgSubject(c.subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, errContent
		}
		if err != nil {
			return 0, err
		}
		c.rest, c.next = message.Data, message.Sequence+1
		c.left -= int64(len(message.Data))
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// putChunks publishes what it reads as messages with one subject, and returns its size.
func (h *Hub) putChunks(ctx context.Context, subject string, from io.Reader) (int64, error) {
	var size int64
	for chunk := make([]byte, chunkSize); ; {
		n, err := io.ReadFull(from, chunk)
		if n > 0 {
			if _, err := h.js.Publish(ctx, subject, chunk[:n]); err != nil {
				return size, err
			}
			size += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return size, nil
		case err != nil:
			return size, err
		}
	}
}
