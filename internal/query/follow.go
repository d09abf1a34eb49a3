package query

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/trace"
)

// Follower reads a trace that is still being written.
type Follower struct {
	In       io.Reader // at the place to start from
	Interval time.Duration
	Lanes    []string // empty means all
	// FromMiddle says that In may be in the middle of a line, which is left out.
	FromMiddle bool

	parser jsontape.Parser
}

// Run shows every whole line until the session's summary has been read or the context ends. Lines
// that are not JSON are passed over.
func (f *Follower) Run(ctx context.Context, show func(trace.Envelope)) error {
	var pending []byte
	buf := make([]byte, 64<<10)
	skip := f.FromMiddle && !f.atLineStart()
	for {
		n, err := f.In.Read(buf)
		pending = append(pending, buf[:n]...)
		for {
			end := bytes.IndexByte(pending, '\n')
			if end < 0 {
				break
			}
			line := pending[:end]
			pending = pending[end+1:]
			if skip {
				skip = false
				continue
			}
			if f.line(line, show) {
				return nil
			}
		}
		if len(pending) > trace.MaxLine {
			pending, skip = nil, true
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.Interval):
		}
	}
}

// atLineStart checks the byte before the current position, if the input allows it.
func (f *Follower) atLineStart() bool {
	seeker, ok := f.In.(interface {
		io.Seeker
		io.ReaderAt
	})
	if !ok {
		return false
	}
	at, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return false
	}
	if at == 0 {
		return true
	}
	var before [1]byte
	_, err = seeker.ReadAt(before[:], at-1)
	return err == nil && before[0] == '\n'
}

func (f *Follower) typeOf(event []byte) string {
	v, _ := f.parser.Parse(event)
	return v.TextOf("type")
}

// line shows one line and reports whether it was the last one of the session.
func (f *Follower) line(line []byte, show func(trace.Envelope)) bool {
	env, err := trace.ParseLine(line)
	if err != nil {
		return false
	}
	last := env.Source == trace.Orchestrator && f.typeOf(env.Event) == trace.TypeSummary
	if len(f.Lanes) == 0 || env.Source == trace.Orchestrator || slices.Contains(f.Lanes, env.Source) {
		show(env)
	}
	return last
}
