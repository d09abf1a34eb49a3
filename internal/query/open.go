package query

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/fit-eval/fit/internal/inspectlog"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// Options says how traces are read.
type Options struct {
	// Dialects decode the lanes of agents that do not speak the stream dialect.
	Dialects session.Dialects
	// Prices computes the cost of what an agent does not price itself; nil leaves it unknown.
	Prices session.Prices
	// Lanes keeps only these lanes; empty keeps all. Entries keep their numbers.
	Lanes []string
	// Known is a Trace of the same unchanged file that was asked a question about the whole of it:
	// its parts are found without reading what comes before them. Nil is none.
	Known *Trace
	// Stdin is read for the path "-".
	Stdin io.Reader
	// Redactor removes secrets from answers, for traces that were not redacted when they were
	// written; nil leaves everything.
	Redactor Redactor
}

// Trace is one file that can be asked questions. Every question reads the file again.
type Trace struct {
	Path string
	// Label is how the trace is named in answers; empty means by its path.
	Label string
	opts  Options

	doc *document
	// lines are those of a trace of another harness, which is one document.
	lines []byte
	// seekable says that lines can be read again by their offsets: a regular file that is not
	// packed.
	seekable    bool
	checkpoints []checkpoint
	stdin       *bufio.Reader
	// spooled holds standard input for questions that read it more than once.
	spooled  *os.File
	problems Problems
	missing  []string
	noEvents bool
}

// Name returns how the trace is named in answers.
func (t *Trace) Name() string { return cmp.Or(t.Label, t.Path) }

// Problems returns what the last question could not read. A question that stopped early knows only
// about the part that it has read.
func (t *Trace) Problems() Problems { return t.problems }

// ErrNothing is returned where a trace that holds nothing cannot be written in another form.
var ErrNothing = errors.New("no events of an agent that fit knows; use a trace, or an agent's stream or session file")

// Nothing reports whether the last question read the whole trace and found no event in it, neither
// of the orchestrator nor of an agent that speaks a known dialect.
func (t *Trace) Nothing() bool { return t.noEvents }

// MissingLanes lists the lanes of the options that the last question did not find, if it saw the
// whole trace.
func (t *Trace) MissingLanes() []string { return t.missing }

// errEmptyPath is returned for a path that is empty, ErrDirectory (in an fs.PathError) for one that
// names a directory.
var (
	errEmptyPath = errors.New("no file was named")
	ErrDirectory = errors.New("a directory, not a trace")
)

// Open prepares a file for questions.
func Open(path string, opts Options) (*Trace, error) {
	if path == "" {
		return nil, errEmptyPath
	}
	if opts.Redactor == nil {
		opts.Redactor = asIs{}
	}
	t := &Trace{Path: path, opts: opts}
	if path == stdinPath {
		return t, t.openStdin()
	}
	if log, sample := inspectlog.Split(path); log != "" {
		var err error
		t.lines, err = inspectlog.Sample(log, sample)
		return t, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrDirectory}
	}
	if info.Mode().IsRegular() { // a pipe is a stream, and must not be touched before it is read
		if err := t.inspect(); err != nil {
			return nil, err
		}
	}
	if t.seekable && opts.Known != nil {
		t.checkpoints = opts.Known.checkpoints
	}
	return t, nil
}

const stdinPath = "-"

// wants reports whether a lane is asked for.
func (o *Options) wants(lane string) bool {
	return len(o.Lanes) == 0 || slices.Contains(o.Lanes, lane)
}

// openStdin looks at the beginning of standard input, which may be packed and may be a structured
// document.
func (t *Trace) openStdin() error {
	if t.opts.Stdin == nil {
		return errors.New("there is no standard input to read")
	}
	in, _, err := trace.Unpack(bufio.NewReaderSize(t.opts.Stdin, documentHead))
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

// Stored returns the structured document that the trace is; nil for any other trace.
func (t *Trace) Stored() []byte {
	if t.doc == nil {
		return nil
	}
	return t.doc.raw
}

// Spool puts standard input into a file without a name, so that it can be read more than once. For
// a trace in a file it does nothing.
func (t *Trace) Spool() error {
	if t.stdin == nil || t.doc != nil || t.spooled != nil {
		return nil
	}
	file, err := os.CreateTemp("", "fit-stdin-")
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	_ = os.Remove(file.Name()) // it stays readable until it is closed, and nothing is left behind
	if _, err := io.Copy(file, t.stdin); err != nil {
		return errors.Join(fmt.Errorf("standard input: %w", err), file.Close())
	}
	t.spooled = file
	return nil
}

// stream opens the bytes of the trace, decompressed, from a place on that is 0 unless the trace is
// seekable. The limit is the number of bytes to read, negative for all.
func (t *Trace) stream(start int64) (in io.Reader, limit int64, closeAll func(), err error) {
	switch {
	case t.lines != nil:
		return bytes.NewReader(t.lines), -1, func() {}, nil
	case t.spooled != nil:
		if _, err := t.spooled.Seek(0, io.SeekStart); err != nil {
			return nil, 0, nil, fmt.Errorf("standard input: %w", err)
		}
		return t.spooled, -1, func() {}, nil
	case t.stdin != nil:
		return t.stdin, -1, func() {}, nil
	}
	file, err := os.Open(t.Path)
	if err != nil {
		return nil, 0, nil, err
	}
	if !t.seekable {
		in, done, err := trace.Unpack(bufio.NewReaderSize(file, 256<<10))
		if err != nil {
			return nil, 0, nil, errors.Join(fmt.Errorf("%s: %w", t.Path, err), file.Close())
		}
		return in, -1, func() { done(); _ = file.Close() }, nil
	}
	limit = -1
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		limit = info.Size() - start
	}
	if _, err := file.Seek(start, io.SeekStart); err != nil && start > 0 {
		return nil, 0, nil, errors.Join(err, file.Close())
	}
	return file, limit, func() { _ = file.Close() }, nil
}
