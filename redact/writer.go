package redact

import "io"

// A Writer redacts a stream of plain text. Secrets that are split over several
// calls of Write are found: the last word is held back until it is complete, a
// private-key block until its last line. It is for one goroutine.
type Writer struct {
	w      io.Writer
	stream stream
	err    error
}

// Writer returns a Writer that writes to w. Close must be called at the end.
func (r *Redactor) Writer(w io.Writer) *Writer {
	return &Writer{w: w, stream: stream{r: r}}
}

// Write buffers p and writes what is decided so far. It reports all of p as written unless the
// writer below fails; after that it always fails.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := w.emit(w.stream.push(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is held back. It does not close the writer below.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	return w.emit(w.stream.flush())
}

func (w *Writer) emit(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, w.err = w.w.Write(p)
	return w.err
}

// Deltas redacts the pieces of one message that are shown as they come. It is
// for one goroutine.
type Deltas struct{ stream stream }

// Deltas returns a Deltas at the beginning of a message.
func (r *Redactor) Deltas() *Deltas { return &Deltas{stream{r: r}} }

// Push adds the next piece and returns what is safe to show now: all but the last word, usually.
func (d *Deltas) Push(text string) string { return string(d.stream.push([]byte(text))) }

// Flush returns the rest of the message.
func (d *Deltas) Flush() string { return string(d.stream.flush()) }
