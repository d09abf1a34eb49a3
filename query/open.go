package query

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/session"
)

// Options says how traces are read.
type Options struct {
	// Dialects decode the lanes of agents that do not speak the stream dialect.
	Dialects session.Dialects
	// Prices computes the cost of what an agent does not price itself; nil leaves it unknown.
	Prices session.Prices
	// Lanes keeps only these lanes; empty keeps all. Turns keep their numbers.
	Lanes []string
	// IndexFrom is the size from which an index is written and used; 0 means DefaultIndexFrom, a negative number never.
	IndexFrom int64
	// CacheDir is where the index goes if it cannot be written beside the trace; empty means nowhere.
	CacheDir string
	// Stdin is what the path "-" reads.
	Stdin io.Reader
}

// DefaultIndexFrom is the size of a file that is worth an index.
const DefaultIndexFrom = 64 << 20

// Trace is one file that can be asked questions. Every question reads the file anew.
type Trace struct {
	Path string
	// Label is how the trace is named in answers; empty means by its path.
	Label string
	opts  Options

	doc   *document
	index *index
	// seekable says that lines can be read again by their offsets: a regular file that is not packed.
	seekable bool
	stdin    *bufio.Reader
	problems Problems
}

// Name is how the trace is named in answers.
func (t *Trace) Name() string { return cmp.Or(t.Label, t.Path) }

// Problems tells what the last question could not read. A question that stopped early knows only about the part that it has read.
func (t *Trace) Problems() Problems { return t.problems }

// ErrEmptyPath is returned for a path that is empty.
var ErrEmptyPath = errors.New("no file was named")

// Open prepares a file for questions.
func Open(path string, opts Options) (*Trace, error) {
	if path == "" {
		return nil, ErrEmptyPath
	}
	t := &Trace{Path: path, opts: opts}
	if path == stdinPath {
		return t, t.openStdin()
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a trace", path)
	}
	if t.doc, err = openDocument(path); err != nil {
		return nil, err
	}
	t.seekable = info.Mode().IsRegular() && t.doc == nil && packed(path) == plain
	if t.seekable {
		t.index = loadIndex(path, info, opts)
	}
	return t, nil
}

const stdinPath = "-"

// errNeedsFile is returned for questions that have to read a trace more than once.
var errNeedsFile = errors.New("this cannot be done with standard input: the trace has to be read twice")

// wants reports whether a lane is asked for.
func (o *Options) wants(lane string) bool {
	return len(o.Lanes) == 0 || slices.Contains(o.Lanes, lane)
}

// openStdin looks at the beginning of standard input, which may be packed and may be a structured document.
func (t *Trace) openStdin() error {
	if t.opts.Stdin == nil {
		return errors.New("there is no standard input to read")
	}
	in, _, err := decompress(bufio.NewReaderSize(t.opts.Stdin, documentHead))
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	t.stdin = bufio.NewReaderSize(in, documentHead)
	head, _ := t.stdin.Peek(documentHead) // less is enough
	if !mayBeDocument(head) {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(t.stdin, maxDocument))
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if t.doc = parseDocument(raw); t.doc == nil {
		t.stdin = bufio.NewReader(bytes.NewReader(raw))
	}
	return nil
}

// stream opens the bytes of the trace, decompressed. The limit is the number of bytes to read, negative for all.
func (t *Trace) stream() (in io.Reader, limit int64, closeAll func(), err error) {
	if t.stdin != nil {
		return t.stdin, -1, func() {}, nil
	}
	file, err := os.Open(t.Path)
	if err != nil {
		return nil, 0, nil, err
	}
	if !t.seekable {
		in, done, err := decompress(bufio.NewReaderSize(file, 256<<10))
		if err != nil {
			return nil, 0, nil, errors.Join(fmt.Errorf("%s: %w", t.Path, err), file.Close())
		}
		return in, -1, func() { done(); _ = file.Close() }, nil
	}
	limit = -1
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		limit = info.Size()
	}
	return file, limit, func() { _ = file.Close() }, nil
}

type format int

const (
	plain format = iota
	gzipped
	zstandard
)

// compression tells by the first bytes how a file is packed; its name does not matter.
func compression(magic []byte) format {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzipped
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstandard
	}
	return plain
}

// packed tells how a file is packed.
func packed(path string) format {
	file, err := os.Open(path)
	if err != nil {
		return plain
	}
	defer file.Close()
	var magic [4]byte
	n, _ := io.ReadFull(file, magic[:]) // a shorter file is not packed
	return compression(magic[:n])
}

// decompress unpacks a stream if it is packed.
func decompress(in *bufio.Reader) (io.Reader, func(), error) {
	magic, _ := in.Peek(4)
	switch compression(magic) {
	case gzipped:
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, err
		}
		return &tolerant{in: unpacked}, func() { _ = unpacked.Close() }, nil
	case zstandard:
		unpacked, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, nil, err
		}
		return &tolerant{in: unpacked}, unpacked.Close, nil
	}
	return in, func() {}, nil
}

// tolerant ends a packed stream that was cut off as a plain one would end, so that what is there can be read; the torn last line tells.
type tolerant struct{ in io.Reader }

func (t *tolerant) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
