package session

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/trace"
)

// ErrUnrecognised is returned for a file that holds no event of any known dialect.
var ErrUnrecognised = errors.New("no agent's events recognised")

// Enricher reads a trace, an agent's bare stream, or one of the files that agents leave on disk,
// line by line, and builds one session per lane. It never fails on what it reads: broken lines are
// counted.
type Enricher struct {
	// Dialects are the formats it may meet.
	Dialects Dialects
	// Options apply to each session.
	Options Options

	lanes    map[string]*lane
	order    []string
	last     *lane // the lane of the last event, which most events share
	lastName string
	parser   jsontape.Parser
	broken   int // lines outside any lane
	skipped  int
}

// lane is one agent's part of what is read.
type lane struct {
	fold     *Fold
	dialect  Dialect
	decoder  Decoder
	agent    AgentID
	waiting  [][]byte // recognised by nobody yet
	waitedAt []Stamp
	broken   int
}

// maxWaiting bounds how many events are kept until a dialect recognises one of them.
const maxWaiting = 64

// ReadFile reads a file, and those that belong to it.
func ReadFile(path string, dialects Dialects, opts Options) ([]*EnrichedSession, error) {
	e := &Enricher{Dialects: dialects, Options: opts}
	if err := e.readFile(path); err != nil {
		return nil, err
	}
	if l := e.lanes[""]; l != nil && l.dialect.Companions != nil {
		for _, companion := range l.dialect.Companions(path) {
			if err := e.readFile(companion); err != nil {
				return nil, err
			}
		}
	}
	sessions, err := e.recognised()
	if err == nil && slices.ContainsFunc(sessions, func(s *EnrichedSession) bool { return len(s.ModelCalls) > 0 }) {
		err = addPrompts(path, sessions)
	}
	return sessions, err
}

func (e *Enricher) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := e.ReadPacked(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ReadPacked reads every line of a stream that may be packed, as traces of finished attempts are.
func (e *Enricher) ReadPacked(r io.Reader) error {
	unpacked, done, err := trace.Unpack(bufio.NewReaderSize(r, 64<<10))
	if err != nil {
		return err
	}
	defer done()
	return e.Read(unpacked)
}

// Read reads a whole stream.
func Read(r io.Reader, dialects Dialects, opts Options) ([]*EnrichedSession, error) {
	e := &Enricher{Dialects: dialects, Options: opts}
	if err := e.Read(r); err != nil {
		return nil, err
	}
	return e.recognised()
}

func (e *Enricher) recognised() ([]*EnrichedSession, error) {
	sessions := e.Sessions()
	if len(sessions) == 0 {
		return nil, ErrUnrecognised
	}
	return sessions, nil
}

// Read reads every line of a stream.
func (e *Enricher) Read(r io.Reader) error {
	lines := trace.NewLines(r, trace.MaxLine)
	for {
		line, _, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, trace.ErrLongLine):
			e.skipped++
		case err != nil:
			return fmt.Errorf("read events: %w", err)
		default:
			e.Line(line, lines.Number)
		}
	}
}

// Line reads one line: an envelope or a bare event. The bytes are not kept.
func (e *Enricher) Line(line []byte, number int64) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if line[0] != '{' {
		e.bad("", number)
		return
	}
	if !mayBeEnvelope(line) {
		e.event(line, Stamp{Line: number})
		return
	}
	env, err := trace.ParseNext(line, e.lastName)
	if err != nil {
		e.bad("", number)
		return
	}
	at := Stamp{Line: number, Ts: env.Ts, Lane: env.Source}
	if env.Source == trace.Orchestrator && !env.Bare {
		e.orchestrator(env.Event, at)
		return
	}
	e.event(env.Event, at)
}

// mayBeEnvelope reports whether a line may be an envelope; it rules out most bare events quickly:
// an envelope has a source and an event, and no type.
func mayBeEnvelope(line []byte) bool {
	switch {
	case bytes.HasPrefix(line, []byte(`{"type":`)), bytes.HasPrefix(line, recordedPrefix),
		bytes.HasPrefix(line, []byte(`{"jsonrpc":`)):
		return false
	case bytes.HasPrefix(line, []byte(`{"source":`)):
		return true
	}
	return bytes.Contains(line, []byte(`"source"`)) && bytes.Contains(line, []byte(`"event"`))
}

// bad counts a line that is not an event.
func (e *Enricher) bad(name string, _ int64) {
	if l := e.lanes[name]; l != nil && l.fold != nil {
		l.fold.ParseError()
		return
	}
	e.broken++
}

// event hands an event to the lane's decoder, or finds one for it.
func (e *Enricher) event(event []byte, at Stamp) {
	if isRawOutput(event) {
		e.note(event, at)
		return
	}
	l := e.lane(at.Lane)
	if bytes.HasPrefix(event, recordedPrefix) && !e.readsBothSides(l, event) {
		if event, at = e.recorded(event, at); event == nil {
			return
		}
	}
	if l.decoder == nil && !e.recognise(l, event) {
		e.wait(l, event, at)
		return
	}
	if l.waiting != nil {
		for i, early := range l.waiting {
			l.decoder.Decode(early, l.waitedAt[i], l.fold)
		}
		l.waiting, l.waitedAt = nil, nil
	}
	l.decoder.Decode(event, at, l.fold)
}

func (e *Enricher) lane(name string) *lane {
	if e.last != nil && e.lastName == name {
		return e.last
	}
	l := e.lanes[name]
	if l == nil {
		if e.lanes == nil {
			e.lanes = map[string]*lane{}
		}
		name = strings.Clone(name)
		l = &lane{fold: NewFold(e.Options)}
		e.lanes[name] = l
		e.order = append(e.order, name)
	}
	e.last, e.lastName = l, strings.Clone(name)
	return l
}

func (e *Enricher) recognise(l *lane, event []byte) bool {
	dialect, ok := e.Dialects.Of(event)
	if ok {
		l.setDialect(dialect)
	}
	return ok
}

func (l *lane) setDialect(dialect Dialect) {
	l.dialect, l.decoder = dialect, dialect.New()
}

// wait keeps an event that no dialect recognises until one recognises a later event.
func (e *Enricher) wait(l *lane, event []byte, at Stamp) {
	if len(l.waiting) >= maxWaiting || len(event) > 1<<20 {
		l.broken++
		return
	}
	l.waiting = append(l.waiting, bytes.Clone(event))
	l.waitedAt = append(l.waitedAt, at)
}

// readsBothSides reports whether the lane's dialect wants a line of a recording as it is.
func (e *Enricher) readsBothSides(l *lane, line []byte) bool {
	if l.decoder != nil {
		return l.dialect.BothSides
	}
	dialect, ok := e.Dialects.Of(line)
	return ok && dialect.BothSides
}

// recorded unwraps a recording of both directions of a protocol, which has both the agent's input
// and its output.
func (e *Enricher) recorded(line []byte, at Stamp) ([]byte, Stamp) {
	if event, ok := cutRecorded(line); ok {
		return event, at
	}
	v, ok := e.parser.Parse(line)
	if !ok || !v.Get("msg").Exists() {
		e.bad(at.Lane, at.Line)
		return nil, at
	}
	if v.TextOf("dir") != "in" {
		return nil, at
	}
	return v.Get("msg").Raw(), at
}

// cutRecorded unwraps a line that is written as recordings are, without parsing it: the decoder
// notices errors in the event itself. Lines sent to the agent become empty.
func cutRecorded(line []byte) (event []byte, ok bool) {
	if !bytes.HasSuffix(line, []byte("}}")) {
		return nil, false
	}
	rest := bytes.TrimLeft(line[len(recordedPrefix):], ": ")
	sent := bytes.HasPrefix(rest, []byte(`"out"`))
	if rest, ok = bytes.CutPrefix(rest, []byte(`"in"`)); !ok && !sent {
		return nil, false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(`"out"`)), ", "), []byte(`"ms"`)); !ok {
		return nil, false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, ":, 0123456789."), []byte(`"msg"`)); !ok {
		return nil, false
	}
	if rest = bytes.TrimLeft(rest, ": "); rest[0] != '{' {
		return nil, false
	}
	if sent {
		return nil, true
	}
	return rest[:len(rest)-1], true
}

var recordedPrefix = []byte(`{"dir"`)

// Sessions closes all lanes and returns the sessions of those with events of an agent, in order of
// appearance.
func (e *Enricher) Sessions() []*EnrichedSession {
	var sessions []*EnrichedSession
	for _, name := range e.order {
		l := e.lanes[name]
		if l.decoder == nil {
			continue
		}
		if finisher, ok := l.decoder.(Finisher); ok {
			finisher.Finish(l.fold)
		}
		s := l.fold.Session()
		s.Dialect, s.Lane = l.dialect.Name, name
		s.Agent = cmp.Or(l.agent, s.Agent, l.dialect.Agent) // the harness knows best, then the stream itself
		s.ParseErrors += l.broken
		if len(sessions) == 0 {
			s.ParseErrors += e.broken
			s.Skipped += e.skipped
			e.broken, e.skipped = 0, 0
		}
		sessions = append(sessions, s)
	}
	return sessions
}
