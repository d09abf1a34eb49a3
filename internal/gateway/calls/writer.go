package calls

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/redact"
)

// The values of --record.
const (
	RecordBodies = "bodies" // everything
	RecordMeta   = "meta"   // everything but the bodies
	RecordOff    = "off"    // nothing
)

// errClosed is returned when a call is appended after Close.
var errClosed = errors.New("the record of calls is closed")

// maxBody bounds the bodies that are kept. The conversations of models are far smaller.
const maxBody = 64 << 20

// Config says how a Writer writes.
type Config struct {
	// Redactor takes secrets out of everything that is written; nil leaves them in.
	Redactor *redact.Redactor
	// MetaOnly leaves bodies out.
	MetaOnly bool
}

// Writer appends calls to a record. It is safe for use from many goroutines.
type Writer struct {
	cfg Config

	mu      sync.Mutex
	file    *os.File
	size    int64 // of the file up to the last whole frame
	cleaner *Cleaner
	chunks  map[Sum]uint32 // the chunks in the file, by content
	count   uint32         // of chunks
	session int
	err     error
}

// Create opens a record for appending and creates it if need be. A torn end, which a killed writer
// leaves, is cut off. A second writer on the same file is refused with jsonlines.ErrLocked.
func Create(path string, cfg Config) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the record of calls: %w", err)
	}
	w := &Writer{
		cfg:     cfg,
		file:    file,
		cleaner: NewCleaner(cfg.Redactor),
		chunks:  map[Sum]uint32{},
	}
	if err := w.takeOver(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the record of calls %s: %w", path, err), file.Close())
	}
	return w, nil
}

// takeOver locks the file and continues where its last writer stopped.
func (w *Writer) takeOver() error {
	if err := jsonlines.Lock(w.file); err != nil {
		return err
	}
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		w.size = int64(len(fileHead))
		_, err := w.file.WriteString(fileHead)
		return err
	}
	r, err := newReader(w.file, info.Size())
	if err != nil {
		return err
	}
	r.loadTables()
	for number, place := range r.chunks {
		w.chunks[place.sum] = number
		w.count = max(w.count, number+1)
	}
	for i := range r.calls {
		w.session = max(w.session, r.calls[i].Session+1)
	}
	if w.size = r.end; info.Size() > w.size { // a torn end
		return w.file.Truncate(w.size)
	}
	return nil
}

// Place notes where a participant works.
func (w *Writer) Place(place Place) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	payload, err := w.json(place)
	if err != nil {
		return err
	}
	return w.write(appendFrame(nil, kindPlace, payload))
}

// Append adds a call with its bodies. After an error of the file every further call returns that
// error.
func (w *Writer) Append(call Call, request, response []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	call.Session = w.session
	call.Request = &Body{Bytes: int64(len(request))}
	call.Response = &Body{Bytes: int64(len(response)), Stream: isStream(response)}
	var frames []byte
	if !w.cfg.MetaOnly {
		news := w.keep(call.Request, request, w.cleaner.Request, nil)
		news = w.keep(call.Response, response, func(body []byte) []Chunk {
			return []Chunk{newChunk("", w.cleaner.response(body), 0)}
		}, news)
		packed, err := w.pack(news)
		if err != nil {
			return err
		}
		frames = packed
	}
	payload, err := w.json(call)
	if err != nil {
		return err
	}
	return w.write(appendFrame(frames, kindCall, payload))
}

// keep numbers the chunks of a body and adds those that the file does not have to news.
func (w *Writer) keep(where *Body, body []byte, cut func([]byte) []Chunk, news []Chunk) []Chunk {
	switch {
	case len(body) == 0:
		return news
	case len(body) > maxBody:
		where.Omitted = fmt.Sprintf("larger than %d bytes", maxBody)
		return news
	}
	for _, chunk := range cut(body) {
		number, known := w.chunks[chunk.sum]
		if !known {
			number = w.count
			w.count++
			w.chunks[chunk.sum] = number
			news = append(news, chunk)
		}
		where.Chunks = append(where.Chunks, number)
	}
	return news
}

// packer is shared by all writers, because making one costs more than a short call. A small window
// is enough for one call.
var packer = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithWindowSize(1<<18), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
})

// pack makes the frame of new chunks, if there are any: the number of the first, how many there
// are, their lengths and sums, and their packed text.
func (w *Writer) pack(chunks []Chunk) ([]byte, error) {
	if len(chunks) == 0 {
		return nil, nil
	}
	encoder, err := packer()
	if err != nil {
		return nil, err
	}
	payload := binary.AppendUvarint(nil, uint64(w.count)-uint64(len(chunks)))
	payload = binary.AppendUvarint(payload, uint64(len(chunks)))
	var text []byte
	for i := range chunks {
		payload = binary.AppendUvarint(payload, uint64(len(chunks[i].text)))
		payload = append(payload, chunks[i].sum[:]...)
		text = append(text, chunks[i].text...)
	}
	return appendFrame(nil, kindChunks, encoder.EncodeAll(text, payload)), nil
}

// json encodes the payload of a frame without secrets.
func (w *Writer) json(value any) ([]byte, error) {
	payload, err := jsonenc.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode a call: %w", err)
	}
	return w.cfg.Redactor.JSON(payload), nil
}

// write adds frames to the file, all of them or none.
func (w *Writer) write(frames []byte) error {
	if w.err != nil {
		return w.err
	}
	if _, err := w.file.WriteAt(frames, w.size); err != nil {
		w.err = fmt.Errorf("write the record of calls: %w", errors.Join(err, w.file.Truncate(w.size)))
		return w.err
	}
	w.size += int64(len(frames))
	return nil
}

// Close syncs the record and returns the first error. Further calls do nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.err, errClosed) {
		return nil
	}
	err := errors.Join(w.err, w.file.Close())
	w.err = errClosed
	return err
}
