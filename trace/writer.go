package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/redact"
)

// ErrClosed is returned when an event is emitted after Close.
var ErrClosed = errors.New("the trace is closed")

// Config says how a Writer writes.
type Config struct {
	// Redactor takes secrets out of every line; nil writes lines as they are.
	Redactor *redact.Redactor
	// Now returns the time in epoch milliseconds; nil means the system's clock.
	Now func() int64
	// OnLine, if set, sees every line after it was written, in order and never two at a time. The
	// envelope's bytes are valid during the call only.
	OnLine func(Envelope)
}

// Writer appends events to a trace. It is safe for use from many goroutines: whole lines are
// written in one call, so that a reader never sees a part of one, and seq increases strictly
// without gaps.
type Writer struct {
	cfg Config

	// writing is held while lines go to the file, so that they arrive in order; mu is not, so that
	// events can be staged meanwhile.
	writing     sync.Mutex
	out         io.Writer
	spare       []byte
	spareStaged []stagedLine
	// written is the seq up to which lines are in the file, and next that of the next line; failed
	// says that err is set. Flush reads them without a lock.
	written atomic.Int64
	next    atomic.Int64
	failed  atomic.Bool

	mu      sync.Mutex
	close   func() error
	pending []byte       // lines that are staged and not written yet
	staged  []stagedLine // where they are in pending; kept for OnLine only
	lanes   map[string]*redact.Lane
	err     error
	closed  bool
}

// NewWriter returns a Writer on a stream, counting from 0. Close does not close the stream.
func NewWriter(out io.Writer, cfg Config) *Writer {
	return &Writer{cfg: cfg, out: out, lanes: map[string]*redact.Lane{}}
}

// Emit appends one event of a source and returns its seq. Bytes that are not a JSON object are kept
// as a raw event. After an error of the underlying file every further call returns that error.
func (w *Writer) Emit(source string, event []byte) (int64, error) {
	return w.emit(source, asEvent(event))
}

// EmitValue appends an event of the harness itself, given as a value that marshals to a JSON
// object.
func (w *Writer) EmitValue(source string, value any) (int64, error) {
	event, err := jsonenc.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("encode event of %q: %w", source, err)
	}
	return w.emit(source, event)
}

func (w *Writer) emit(source string, event []byte) (int64, error) {
	seq, err := w.stageRedacted(source, event)
	if err != nil {
		return 0, err
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return seq, nil
}

// lane returns the redactor's state for one source, so that a secret cut over two consecutive
// deltas is still found.
func (w *Writer) lane(source string) *redact.Lane {
	lane := w.lanes[source]
	if lane == nil {
		lane = w.cfg.Redactor.Lane()
		w.lanes[source] = lane
	}
	return lane
}

// Err returns the first error of the underlying file, if there was one.
func (w *Writer) Err() error {
	if !w.failed.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// NextSeq returns the seq of the next event.
func (w *Writer) NextSeq() int64 { return w.next.Load() }

// Close writes what is staged, ends the trace and returns the first error. Further calls do
// nothing.
func (w *Writer) Close() error {
	flushed := w.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.err = cmp.Or(w.err, flushed)
	w.closed = true
	if w.close != nil {
		if err := w.close(); err != nil && w.err == nil {
			w.err = fmt.Errorf("close trace: %w", err)
		}
	}
	w.failed.Store(w.err != nil)
	return w.err
}

// asEvent returns the bytes of a JSON object on one line, wrapping anything else.
func asEvent(event []byte) []byte {
	event = bytes.TrimSpace(event)
	if len(event) == 0 || event[0] != '{' || !json.Valid(event) {
		return RawEvent(TypeRaw, event)
	}
	if bytes.IndexByte(event, '\n') >= 0 || bytes.IndexByte(event, '\r') >= 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, event); err == nil {
			return compact.Bytes()
		}
	}
	return event
}

// RawEvent returns the event for text that an agent printed and that is not an event; kind is
// TypeRaw or TypeStderr.
func RawEvent(kind string, text []byte) []byte {
	event, _ := jsonenc.Marshal(struct { // strings always marshal
		Type string `json:"type"`
		Text string `json:"text"`
	}{kind, string(text)})
	return event
}
