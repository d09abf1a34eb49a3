package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fit-eval/fit/internal/jsonlines"
)

// ErrLocked is returned when another process is writing the same trace.
var ErrLocked = jsonlines.ErrLocked

// Open opens a trace file for appending, creating it if need be. If the file holds an earlier
// session its lines stay and the sequence continues after them; if its last line is torn, a newline
// and a "recovered" event are added first. A second writer on the same file is refused with
// ErrLocked.
func Open(path string, cfg Config) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	w := NewWriter(file, cfg)
	w.close = file.Close
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = w.takeOver(file, info.Size())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open trace %s: %w", path, err), file.Close())
	}
	return w, nil
}

// takeOver locks a regular file and continues where its last writer stopped.
func (w *Writer) takeOver(file *os.File, size int64) error {
	if err := jsonlines.Lock(file); err != nil {
		return err
	}
	if size == 0 {
		return nil
	}
	tail, err := readTail(file, size)
	if err != nil {
		return err
	}
	w.next.Store(tail.nextSeq)
	w.written.Store(tail.nextSeq)
	if tail.terminated {
		return nil
	}
	if _, err := file.Write([]byte("\n")); err != nil {
		return err
	}
	_, err = w.EmitValue(Orchestrator, Recovered{Type: TypeRecovered, TornBytes: tail.tornBytes})
	return err
}

type tail struct {
	nextSeq    int64
	terminated bool  // the file ends with a newline
	tornBytes  int64 // of the unusable part after the last newline
}

// readTail looks at the end of a file, widening its view until it has found the last whole
// envelope.
func readTail(file io.ReaderAt, size int64) (tail, error) {
	var t tail
	err := jsonlines.Tail(file, size, func(end []byte) (found bool) {
		found, t = scanTail(end)
		return found
	})
	return t, err
}

func scanTail(buf []byte) (found bool, t tail) {
	t.terminated = buf[len(buf)-1] == '\n'
	lines := bytes.Split(buf, []byte("\n"))
	last := lines[len(lines)-1]
	if !t.terminated && !json.Valid(last) {
		t.tornBytes = int64(len(last))
		lines = lines[:len(lines)-1]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if env, err := ParseLine(lines[i]); err == nil && !env.Bare {
			t.nextSeq = env.Seq + 1
			return true, t
		}
	}
	return false, t
}
