package harness

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/fit-eval/fit/trace"
)

// garbageLimit is how much output of one round that is not an event is written to the trace.
const garbageLimit = 4 << 20

// garbage limits the output of an agent that is not an event: a program that prints rubbish must
// not fill the disk.
type garbage struct {
	mu      sync.Mutex
	kept    int
	skipped int
}

// keep reports whether a line is written to the trace.
func (g *garbage) keep(event []byte) bool {
	event = bytes.TrimSpace(event)
	isEvent := bytes.HasPrefix(event, []byte("{")) && !bytes.HasPrefix(event, rawPrefix) &&
		!bytes.HasPrefix(event, stderrPrefix)
	if isEvent {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kept+len(event) > garbageLimit {
		g.skipped += len(event)
		return false
	}
	g.kept += len(event)
	return true
}

// The beginnings of lines that stand for output that was not an event.
var (
	rawPrefix    = []byte(`{"type":"` + trace.TypeRaw + `"`)
	stderrPrefix = []byte(`{"type":"` + trace.TypeStderr + `"`)
)

// endRound resets the count. It returns a note about the round that ended, or nothing.
func (g *garbage) endRound() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	skipped := g.skipped
	g.kept, g.skipped = 0, 0
	if skipped == 0 {
		return ""
	}
	return fmt.Sprintf("printed more than %d MiB that are not events in one turn; %d bytes are left out",
		garbageLimit>>20, skipped)
}
