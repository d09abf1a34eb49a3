package agent

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/trace"
)

// lineSplitter cuts a stream into lines and hands each one over without its line ending. Lines
// longer than the limit are not kept; the handler for them gets their length. It is not safe for
// concurrent use: each stream has its own.
type lineSplitter struct {
	limit   int
	line    func([]byte)
	tooLong func(length int64)

	rest   []byte
	length int64 // of the line so far, also when it is no longer kept
}

// Write takes the next piece of the stream. It never fails.
func (s *lineSplitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.keep(p)
			return n, nil
		}
		if len(s.rest) == 0 && s.length == 0 && end <= s.limit {
			s.line(p[:end]) // the common case: the piece has the whole line
		} else {
			s.keep(p[:end])
			s.finish()
		}
		p = p[end+1:]
	}
}

func (s *lineSplitter) keep(p []byte) {
	s.length += int64(len(p))
	if s.length > int64(s.limit) {
		s.rest = nil
		return
	}
	s.rest = append(s.rest, p...)
}

// finish ends the line that is being collected.
func (s *lineSplitter) finish() {
	if s.length > int64(s.limit) {
		s.tooLong(s.length)
	} else {
		s.line(s.rest)
	}
	s.length = 0
	if cap(s.rest) > 1<<20 {
		s.rest = nil // do not hold on to the memory of one huge line
	}
	s.rest = s.rest[:0]
}

// close hands over the last line if the stream ended without a newline.
func (s *lineSplitter) close() {
	if s.length > 0 {
		s.finish()
	}
}

// asNative returns the event for a line of standard output, and whether the agent made it. Blank
// lines give no event.
func asNative(line []byte) (event []byte, native bool) {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
		return nil, false
	case line[0] == '{' && json.Valid(line):
		return line, true
	default:
		return trace.RawEvent(trace.TypeRaw, line), false
	}
}

func skippedEvent(length int64) []byte {
	return fmt.Appendf(nil, `{"type":%q,"bytes":%d,"reason":"line longer than %d bytes"}`, trace.TypeSkipped, length,
		trace.MaxLine)
}

func droppedEvent(count int, of string) []byte {
	quoted, _ := json.Marshal(of) // a string always marshals
	return fmt.Appendf(nil, `{"type":%q,"count":%d,"of":%s}`, trace.TypeDropped, count, quoted)
}
