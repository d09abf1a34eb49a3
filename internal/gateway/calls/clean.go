package calls

import (
	"bytes"
	"crypto/sha256"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/redact"
)

// Sum names the content of a chunk.
type Sum [sha256.Size]byte

// Chunk is a part of a request, without secrets.
type Chunk struct {
	// Member is the member of the request that the chunk is an element of, or the whole of: system,
	// instructions, tools, messages, input. It is empty for text between them.
	Member string
	// Value is the element itself, as JSON.
	Value []byte

	text []byte // with the separator before it
	sum  Sum
}

// Text returns the chunk with the separator before it.
func (c *Chunk) Text() []byte { return c.text }

// Sum names the content of the chunk.
func (c *Chunk) Sum() Sum { return c.sum }

// Cleaner cuts requests into chunks and takes secrets out of them. It remembers the chunks of the
// requests before, so that a growing conversation costs only what is new in it. It is not safe for
// concurrent use.
type Cleaner struct {
	redactor *redact.Redactor
	parser   jsontape.Parser
	known    map[Sum]Chunk // by the content before redaction
	size     int           // of what known holds
}

// maxKnown is how much a Cleaner remembers, in bytes.
const maxKnown = 16 << 20

// NewCleaner returns a Cleaner; a nil redactor leaves secrets in.
func NewCleaner(redactor *redact.Redactor) *Cleaner {
	return &Cleaner{redactor: redactor, known: map[Sum]Chunk{}}
}

// Request cuts a request. The chunks do not depend on the body's memory.
func (c *Cleaner) Request(body []byte) []Chunk {
	pieces := cut(&c.parser, body)
	chunks := make([]Chunk, 0, len(pieces))
	for _, p := range pieces {
		if p.start == p.end {
			continue
		}
		chunk, whole := c.chunk(body, p)
		if !whole { // half of a document cannot be redacted as JSON, so the whole document is
			return plain(&c.parser, c.redactor.JSON(body))
		}
		chunks = append(chunks, chunk)
	}
	return chunks
}

// chunk redacts one piece. It reports false for a piece between values that holds a secret.
func (c *Cleaner) chunk(body []byte, p piece) (Chunk, bool) {
	raw := body[p.start:p.end]
	sum := Sum(sha256.Sum256(raw))
	if chunk, ok := c.known[sum]; ok && chunk.Member == p.member {
		return chunk, true
	}
	separator := p.value - p.start
	text := bytes.Clone(raw)
	if p.member != "" {
		text = append(text[:separator], c.redactor.JSON(body[p.value:p.end])...)
	} else if !bytes.Equal(c.redactor.Bytes(raw), raw) {
		return Chunk{}, false
	}
	chunk := newChunk(p.member, text, separator)
	if c.size += len(chunk.text); c.size > maxKnown {
		clear(c.known)
		c.size = len(chunk.text)
	}
	c.known[sum] = chunk
	return chunk, true
}

// plain cuts a body that holds no secrets any more.
func plain(parser *jsontape.Parser, body []byte) []Chunk {
	var chunks []Chunk
	for _, p := range cut(parser, body) {
		if p.start < p.end {
			chunks = append(chunks, newChunk(p.member, body[p.start:p.end], p.value-p.start))
		}
	}
	return chunks
}

func newChunk(member string, text []byte, separator int) Chunk {
	chunk := Chunk{Member: member, text: text, sum: sha256.Sum256(text)}
	if member != "" {
		chunk.Value = text[separator:]
	}
	return chunk
}

// isStream reports whether a response is a stream of events.
func isStream(body []byte) bool {
	first, _, _ := bytes.Cut(bytes.TrimLeft(body, "\r\n"), []byte(":"))
	switch string(first) {
	case "event", "data", "id", "retry", "": // without a name it is a comment
		return len(body) > 0
	}
	return false
}

// response takes the secrets out of a response. Those of a stream may be cut over several events.
func (c *Cleaner) response(body []byte) []byte {
	if !c.redactor.Enabled() {
		return body
	}
	if !isStream(body) {
		return c.redactor.JSON(body)
	}
	lane := c.redactor.Lane()
	clean := make([]byte, 0, len(body))
	for line := range bytes.Lines(body) {
		data, isData := bytes.CutPrefix(line, []byte("data:"))
		if isData {
			clean = append(clean, "data:"...)
			line = data
		}
		clean = append(clean, lane.Line(line)...)
	}
	return clean
}
