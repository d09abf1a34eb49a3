package trace

import (
	"fmt"
	"strconv"
)

// keptBuffer is how much memory a Writer holds on to between lines; one huge event does not stay for ever.
const keptBuffer = 1 << 20

// stagedLine is where a line's event lies in the buffer of staged lines.
type stagedLine struct {
	source     string
	seq, ts    int64
	start, end int
}

// Stage gives an event its place and seq in the trace without writing it yet: Flush writes everything staged so far in one call. It is for a producer of many
// small lines who decides itself when they must be on disk. The event must be a JSON object on one line, and it is not redacted: the caller answers for both.
func (w *Writer) Stage(source string, event []byte) (int64, error) {
	return w.stage(source, event, true)
}

func (w *Writer) stage(source string, event []byte, clean bool) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	if w.closed {
		return 0, ErrClosed
	}
	if w.cfg.Redactor != nil && !clean {
		event = w.lane(source).Line(event)
		source = w.cfg.Redactor.String(source)
	}
	seq, ts := w.next.Load(), w.cfg.Now()
	w.pending = appendEnvelope(w.pending, source, seq, w.digits(ts), event)
	if w.cfg.OnLine != nil {
		end := len(w.pending) - len("}\n")
		w.staged = append(w.staged, stagedLine{source: source, seq: seq, ts: ts, start: end - len(event), end: end})
	}
	w.next.Store(seq + 1)
	return seq, nil
}

// digits writes a time, which is most often that of the line before.
func (w *Writer) digits(ts int64) []byte {
	if ts != w.digitsOf || len(w.tsDigits) == 0 {
		w.digitsOf, w.tsDigits = ts, strconv.AppendInt(w.tsDigits[:0], ts, 10)
	}
	return w.tsDigits
}

// Flush writes what is staged. When it returns without error, everything that was staged before the call is in the file. Callers that flush at the same time share
// writes: what is staged while one of them writes, the next one writes for all.
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
		w.cfg.OnLine(Envelope{Source: line.source, Seq: line.seq, Ts: line.ts, Event: lines[line.start:line.end]})
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
