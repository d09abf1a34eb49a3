package trace

import (
	"fmt"
	"strconv"
	"time"
)

// keptBuffer is how much memory a Writer holds on to between lines; one huge event does not stay
// forever.
const keptBuffer = 1 << 20

// stagedLine is where a line's event lies in the buffer of staged lines.
type stagedLine struct {
	source     string
	seq, ts    int64
	start, end int
}

// Appender is an event that writes itself: AppendJSON appends a JSON object on one line.
type Appender interface {
	AppendJSON(b []byte) []byte
}

// JSON is an event that is encoded already.
type JSON []byte

// AppendJSON appends the event as it is.
func (e JSON) AppendJSON(b []byte) []byte { return append(b, e...) }

// Stage gives an event its place and seq in the trace without writing it yet: Flush writes
// everything staged so far in one call. It is for a producer of many small lines who decides itself
// when they must be on disk. The event is encoded in place and not redacted: the caller answers for
// what is in it.
func (w *Writer) Stage(source string, event Appender) (int64, error) {
	return w.StageAt(source, time.Time{}, event)
}

// StageAt is Stage for a caller who has just looked at the clock. A Writer with a clock of its own
// looks at that one instead.
func (w *Writer) StageAt(source string, at time.Time, event Appender) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return 0, err
	}
	return w.append(source, w.timeOf(at), event), nil
}

// stageRedacted stages an event of which nothing is known.
func (w *Writer) stageRedacted(source string, event []byte) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return 0, err
	}
	if w.cfg.Redactor != nil {
		event = w.lane(source).Line(event)
		source = w.cfg.Redactor.Word(source)
	}
	return w.append(source, w.timeOf(time.Time{}), JSON(event)), nil
}

// unusable says why nothing can be staged any more, if that is so.
func (w *Writer) unusable() error {
	if w.err == nil && w.closed {
		return ErrClosed
	}
	return w.err
}

// append adds a line to those that are pending.
func (w *Writer) append(source string, ts int64, event Appender) int64 {
	seq := w.next.Load()
	line := appendEnvelopeHead(w.pending, source, seq, w.digits(ts))
	start := len(line)
	line = event.AppendJSON(line)
	if w.cfg.OnLine != nil {
		w.staged = append(w.staged, stagedLine{
			source: source,
			seq:    seq,
			ts:     ts,
			start:  start,
			end:    len(line),
		})
	}
	line = append(line, "}\n"...)
	w.pending = line
	w.next.Store(seq + 1)
	return seq
}

// moment is how old a time may be that was looked up for several lines at once.
const moment = 1000 // milliseconds

// timeOf returns the time of a line that is staged now. Lines that others have staged since the
// caller looked at the clock do not make time run backwards.
func (w *Writer) timeOf(at time.Time) int64 {
	switch {
	case w.cfg.Now != nil:
		return w.cfg.Now()
	case at.IsZero():
		return time.Now().UnixMilli()
	}
	ts := at.UnixMilli()
	if ts < w.digitsOf && w.digitsOf-ts < moment {
		return w.digitsOf
	}
	return ts
}

// digits writes a time, which is most often that of the line before.
func (w *Writer) digits(ts int64) []byte {
	if ts != w.digitsOf || len(w.tsDigits) == 0 {
		w.digitsOf, w.tsDigits = ts, strconv.AppendInt(w.tsDigits[:0], ts, 10)
	}
	return w.tsDigits
}

// Flush writes what is staged. When it returns without error, everything that was staged before the
// call is in the file. Callers that flush at the same time share writes: what is staged while one
// of them writes, the next one writes for all.
func (w *Writer) Flush() error { return w.FlushTo(w.NextSeq()) }

// FlushTo is Flush for whoever only needs the lines before a seq to be in the file.
func (w *Writer) FlushTo(seq int64) error {
	if w.written.Load() >= seq {
		return w.Err()
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.written.Load() >= seq { // another caller has done it
		return w.Err()
	}
	return w.writePending()
}

// writePending writes what is staged. The lock for writing must be held.
func (w *Writer) writePending() error {
	lines, staged, next, err := w.takePending()
	if err != nil || len(lines) == 0 {
		return err
	}
	if _, err := w.out.Write(lines); err != nil {
		return w.fail(fmt.Errorf("write trace: %w", err))
	}
	for _, line := range staged {
		w.cfg.OnLine(Envelope{
			Source: line.source,
			Seq:    line.seq,
			Ts:     line.ts,
			Event:  lines[line.start:line.end],
		})
	}
	w.written.Store(next)
	if cap(lines) <= keptBuffer {
		w.spare, w.spareStaged = lines[:0], staged[:0]
	}
	return nil
}

func (w *Writer) takePending() (lines []byte, staged []stagedLine, next int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || len(w.pending) == 0 {
		return nil, nil, 0, w.err
	}
	lines, staged = w.pending, w.staged
	w.pending, w.staged = w.spare, w.spareStaged
	w.spare, w.spareStaged = nil, nil
	return lines, staged, w.next.Load(), nil
}

func (w *Writer) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		w.failed.Store(true)
	}
	return w.err
}
