package calls

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// errNotRecord is returned for a file that is not a record of calls.
var errNotRecord = errors.New("not a record of calls")

// Problem is a part of a record that cannot be read.
type Problem struct {
	Offset int64 // in the file
	Text   string
	// Torn says that the part is the end of the file: its writer was killed, or is still writing.
	Torn bool
}

func (p Problem) String() string { return fmt.Sprintf("offset %d: %s", p.Offset, p.Text) }

// Reader reads a record. It is not safe for concurrent use.
type Reader struct {
	file     io.ReaderAt
	close    func() error
	calls    []Call
	places   []Place
	problems []Problem
	blocks   []block
	end      int64 // after the last whole frame

	loaded  bool // the tables of the blocks
	chunks  map[uint32]chunkPlace
	decoder *zstd.Decoder
	texts   map[int][]byte // the unpacked texts of blocks
	size    int            // of texts
}

// block is a frame of chunks.
type block struct {
	frame
	offset int64 // of the payload
	table  int   // the length of the table before the packed text
	text   int   // the length of the text
}

// chunkPlace is the position of a chunk.
type chunkPlace struct {
	block      int
	start, end int // in the block's text
	sum        Sum
}

// Open reads which calls a record holds. Bodies are read when they are asked for.
func Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	var r *Reader
	if err == nil {
		r, err = newReader(file, info.Size())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	r.close = file.Close
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.decoder != nil {
		r.decoder.Close()
	}
	if r.close == nil {
		return nil
	}
	return r.close()
}

// Calls returns the calls, in the order of the file.
func (r *Reader) Calls() []Call { return r.calls }

// Places returns where the participants worked.
func (r *Reader) Places() []Place { return r.places }

// Problems returns what could not be read when the record was opened.
func (r *Reader) Problems() []Problem { return r.problems }

// Damage says what is missing in the middle of the record, empty if nothing is. A torn end is what
// a session leaves that was killed, and no damage.
func (r *Reader) Damage() string {
	for _, p := range r.problems {
		if !p.Torn {
			return "the record is damaged: " + p.String()
		}
	}
	return ""
}

// newReader passes over the frames of a file.
func newReader(file io.ReaderAt, size int64) (*Reader, error) {
	r := &Reader{file: file, texts: map[int][]byte{}, chunks: map[uint32]chunkPlace{}}
	head := make([]byte, len(fileHead))
	n, err := file.ReadAt(head, 0)
	switch {
	case string(head[:n]) != fileHead[:n] || n == 0:
		return nil, errNotRecord
	case n < len(fileHead): // the first thing that is written
		r.problem(Problem{Text: "the file ends in its first line", Torn: true})
		return r, nil
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	return r, (&scanner{
		reader: r,
		size:   size,
		at:     int64(len(fileHead)),
	}).run()
}

// maxProblems limits what is reported about a badly damaged file.
const maxProblems = 100

func (r *Reader) problem(p Problem) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, p)
	}
}

// scanner walks from frame to frame.
type scanner struct {
	reader *Reader
	size   int64
	at     int64
	in     *bufio.Reader
	inAt   int64 // what in reads next
}

// scanBuffer holds several calls; larger bodies are passed over without being read.
const scanBuffer = 32 << 10

// peek returns the next n bytes at the position, or fewer at the end of the file.
func (s *scanner) peek(n int) ([]byte, error) {
	if s.in == nil {
		s.in = bufio.NewReaderSize(io.NewSectionReader(s.reader.file, s.at, s.size-s.at), scanBuffer)
		s.inAt = s.at
	}
	skip := s.at - s.inAt
	if skip > int64(s.in.Buffered()) {
		s.in.Reset(io.NewSectionReader(s.reader.file, s.at, s.size-s.at))
	} else if _, err := s.in.Discard(int(skip)); err != nil {
		return nil, err
	}
	s.inAt = s.at
	text, err := s.in.Peek(n)
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	return text, err
}

func (s *scanner) run() error {
	r := s.reader
	for r.end = s.at; s.at < s.size; r.end = s.at {
		head, err := s.peek(headLength)
		if err != nil {
			return err
		}
		f, ok := parseHead(head)
		if ok && s.at+headLength+int64(f.length) > s.size {
			r.problem(Problem{Offset: s.at, Text: "the last frame is torn", Torn: true})
			return nil
		}
		if ok {
			ok, err = s.frame(f)
		}
		if err != nil {
			return err
		}
		if !ok {
			if found, err := s.resync(); err != nil || !found {
				return err
			}
		}
	}
	return nil
}

// frame reads one frame and moves past it. It reports false if the frame is damaged.
func (s *scanner) frame(f frame) (bool, error) {
	r, start := s.reader, s.at+headLength
	after := start + int64(f.length)
	switch f.kind {
	case kindChunks:
		if after == s.size { // a writer that lost its machine may have left a frame without content
			payload, err := s.payload(start, f)
			if err != nil || !f.fits(payload) {
				return false, err
			}
		}
		r.blocks = append(r.blocks, block{frame: f, offset: start})
	case kindCall, kindPlace:
		payload, err := s.payload(start, f)
		if err != nil || !f.fits(payload) {
			return false, err
		}
		if err := r.take(f.kind, payload); err != nil {
			r.problem(Problem{Offset: s.at, Text: err.Error()})
		}
	}
	s.at = after
	return true, nil
}

// payload reads what is in a frame.
func (s *scanner) payload(start int64, f frame) ([]byte, error) {
	if whole := headLength + int(f.length); whole <= scanBuffer {
		text, err := s.peek(whole)
		if err != nil || len(text) < whole {
			return nil, err
		}
		return text[headLength:], nil
	}
	return readAt(s.reader.file, start, int(f.length))
}

func readAt(file io.ReaderAt, offset int64, length int) ([]byte, error) {
	text := make([]byte, length)
	n, err := file.ReadAt(text, offset)
	if n == length {
		err = nil
	}
	return text[:n], err
}

// take keeps what a frame says.
func (r *Reader) take(kind byte, payload []byte) error {
	if kind == kindPlace {
		var place Place
		if err := json.Unmarshal(payload, &place); err != nil {
			return fmt.Errorf("the place of a participant: %w", err)
		}
		r.places = append(r.places, place)
		return nil
	}
	var call Call
	if err := json.Unmarshal(payload, &call); err != nil {
		return fmt.Errorf("call: %w", err)
	}
	r.calls = append(r.calls, call)
	return nil
}

// resync reports the damage at the position and moves to the next good frame. It reports false if
// there is none.
func (s *scanner) resync() (bool, error) {
	const window = 1 << 20
	damaged := s.at
	for s.at++; s.at < s.size; s.at += window - headLength {
		text, err := readAt(s.reader.file, s.at, int(min(window, s.size-s.at)))
		if err != nil {
			return false, err
		}
		if found := nextHead(text); found >= 0 {
			s.at += int64(found)
			s.reader.problem(Problem{Offset: damaged, Text: fmt.Sprintf("%d bytes are damaged", s.at-damaged)})
			return true, nil
		}
	}
	s.reader.problem(Problem{Offset: damaged, Text: "the last frame is torn", Torn: true})
	return false, nil
}
