package trace

import (
	"fmt"
	"time"
)

// keptBuffer is how much memory a Writer holds on to between lines; one huge event does not stay
// forever.
const keptBuffer = 1 << 20

// stagedLine is the position of a line's event in the buffer of staged lines.
type stagedLine struct {
	source     string
	seq, ts    int64
	start, end int
}

// Stage gives an event, a JSON object on one line, its place and seq in the trace without writing
// it yet: Flush writes everything staged so far in one call. It is for a producer of many small
// lines that decides itself when they must be on disk. The event is not redacted: the caller is
// responsible for what is in it.
func (w *Writer) Stage(source string, event []byte) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return 0, err
	}
	return w.append(source, event), nil
}

// stageRedacted redacts an event of unknown content and stages it.
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
	return w.append(source, event), nil
}

// unusable returns the reason why nothing can be staged any more, if there is one.
func (w *Writer) unusable() error {
	if w.err == nil && w.closed {
		return ErrClosed
	}
	return w.err
}

// append adds a line to those that are pending.
func (w *Writer) append(source string, event []byte) int64 {
	seq, ts := w.next.Load(), w.now()
	line := appendEnvelopeHead(w.pending, source, seq, ts)
	start := len(line)
	line = append(line, event...)
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

func (w *Writer) now() int64 {
	if w.cfg.Now != nil {
		return w.cfg.Now()
	}
	return time.Now().UnixMilli()
}

// Flush writes what is staged. When it returns without error, everything that was staged before the
// call is in the file. Callers that flush at the same time share writes: while one of them writes,
// the lines staged meanwhile wait, and the next caller writes them for all.
func (w *Writer) Flush() error {
	seq := w.NextSeq()
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
