package console

import (
	"io"
	"os"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/display"
)

// Shared returns the console with streams that many goroutines may write to concurrently: what is
// written with one call stays together. The files of a process are such streams already. What a
// person reads on standard error fits the terminal.
func (c *Console) Shared() *Console {
	mu, shared := &sync.Mutex{}, *c
	for _, stream := range []*io.Writer{&shared.Stdout, &shared.Stderr} {
		if _, ok := (*stream).(*os.File); !ok && *stream != nil {
			*stream = &lockedWriter{mu: mu, w: *stream}
		}
	}
	if c.folds(c.Stderr) {
		shared.Stderr = &foldingWriter{w: shared.Stderr, columns: func() int { return c.columns(c.Stderr) }}
	}
	return &shared
}

// lockedWriter is a stream that others write to as well, perhaps under another name.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// foldingWriter breaks lines that a terminal would break within words. Each call writes whole
// lines.
type foldingWriter struct {
	w       io.Writer
	columns func() int // of a window that may change
}

func (f *foldingWriter) Write(p []byte) (int, error) {
	text := string(p)
	if !strings.HasPrefix(text, redraw) {
		text = display.Fold(text, f.columns())
	}
	if _, err := io.WriteString(f.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// redraw clears the line of a terminal on which the cursor is.
const redraw = "\r\x1b[K"

// Status writes a line over the one before on standard error, which is a terminal. It is cut,
// because what fills a second line stays there.
func (c *Console) Status(line string) {
	_, _ = io.WriteString(c.Stderr, redraw+display.CutColumns(line, c.columns(c.Stderr)-1))
}
