package console

import (
	"io"
	"os"
	"sync"
)

// Shared returns the console with streams that many goroutines may write to concurrently: what is
// written with one call stays together. The files of a process are such streams already.
func (c *Console) Shared() *Console {
	mu, shared := &sync.Mutex{}, *c
	for _, stream := range []*io.Writer{&shared.Stdout, &shared.Stderr} {
		if _, ok := (*stream).(*os.File); !ok && *stream != nil {
			*stream = &lockedWriter{mu: mu, w: *stream}
		}
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
