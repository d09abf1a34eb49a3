package calls

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/jsontape"
)

// maxTexts is how much unpacked text a Reader keeps for the next body.
const maxTexts = 64 << 20

// ErrNoBody is returned for a body that was not kept.
var ErrNoBody = errors.New("the body was not recorded")

// Body joins a body of a call.
func (r *Reader) Body(body *Body) ([]byte, error) {
	if body == nil || len(body.Chunks) == 0 && body.Bytes > 0 {
		return nil, ErrNoBody
	}
	var text []byte
	for _, number := range body.Chunks {
		chunk, err := r.Chunk(number)
		if err != nil {
			return nil, err
		}
		if len(text)+len(chunk) > 2*maxBody {
			return nil, errors.New("the body is too large")
		}
		text = append(text, chunk...)
	}
	return text, nil
}

// Request returns the chunks of a request.
func (r *Reader) Request(call *Call) ([]Chunk, error) {
	text, err := r.Body(call.Request)
	if err != nil {
		return nil, err
	}
	return plain(new(jsontape.Parser), text), nil
}

// Chunk returns the text of a chunk, which is valid until the next call. Requests have most chunks
// in common: a reader of all requests reads each chunk once.
func (r *Reader) Chunk(number uint32) ([]byte, error) {
	r.loadTables()
	place, ok := r.chunks[number]
	if !ok {
		return nil, fmt.Errorf("chunk %d is missing or damaged", number)
	}
	text, err := r.text(place.block)
	if err != nil {
		return nil, err
	}
	return text[place.start:place.end], nil
}

// text unpacks the chunks of a block.
func (r *Reader) text(number int) ([]byte, error) {
	if text, ok := r.texts[number]; ok {
		return text, nil
	}
	b := r.blocks[number]
	payload, err := readAt(r.file, b.offset, int(b.length))
	if err != nil {
		return nil, err
	}
	if !b.fits(payload) {
		return nil, fmt.Errorf("offset %d: the bodies of a call are damaged", b.offset)
	}
	if r.decoder == nil {
		r.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(4*maxBody))
		if err != nil {
			return nil, err
		}
	}
	text, err := r.decoder.DecodeAll(payload[b.table:], nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("offset %d: the bodies of a call: %w", b.offset, err)
	case len(text) != b.text:
		return nil, fmt.Errorf("offset %d: the bodies of a call have %d bytes instead of %d", b.offset, len(text),
			b.text)
	}
	if r.size += len(text); r.size > maxTexts {
		clear(r.texts)
		r.size = len(text)
	}
	r.texts[number] = text
	return text, nil
}

// loadTables reads which chunks are in which block. Blocks that are damaged have none.
func (r *Reader) loadTables() {
	if r.loaded {
		return
	}
	r.loaded = true
	for i := range r.blocks {
		b := &r.blocks[i]
		if err := r.loadTable(i, b); err != nil {
			r.problem(Problem{Offset: b.offset, Text: "the table of chunks: " + err.Error()})
		}
	}
}

var errTable = errors.New("damaged")

func (r *Reader) loadTable(index int, b *block) error {
	table, err := readAt(r.file, b.offset, min(int(b.length), 4<<10))
	if err != nil {
		return err
	}
	first, n := binary.Uvarint(table)
	count, m := binary.Uvarint(table[max(0, n):])
	const smallest = uint64(len(Sum{}) + 1) // of an entry
	if n <= 0 || m <= 0 || count > maxChunks || count*smallest > uint64(b.length) || first > 1<<32-1-count {
		return errTable
	}
	if most := (len(Sum{})+binary.MaxVarintLen64)*int(count) + n + m; most > len(table) {
		if table, err = readAt(r.file, b.offset, min(int(b.length), most)); err != nil {
			return err
		}
	}
	rest, places := table[n+m:], make([]chunkPlace, 0, count)
	for range count {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > maxBody || len(rest) < n+len(Sum{}) || b.text > 4*maxBody {
			return errTable
		}
		places = append(places, chunkPlace{
			block: index,
			start: b.text,
			end:   b.text + int(length),
			sum:   Sum(rest[n : n+len(Sum{})]),
		})
		b.text += int(length)
		rest = rest[n+len(Sum{}):]
	}
	b.table = len(table) - len(rest)
	for i, place := range places {
		r.chunks[uint32(first)+uint32(i)] = place
	}
	return nil
}
