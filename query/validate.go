package query

import (
	"context"
	"fmt"

	"github.com/fit-eval/fit/trace"
)

// Finding is something wrong with a line of a trace.
type Finding struct {
	Line     int64  `json:"line"`
	Severity string `json:"severity"` // error or warning
	Message  string `json:"message"`
}

// ValidationReport counts the findings.
type ValidationReport struct {
	Lines    int64
	Errors   int
	Warnings int
}

const (
	severityError   = "error"
	severityWarning = "warning"
)

// Validate checks the form of every line and the order of the whole: lines are JSON objects;
// envelopes have a source, a sequence that rises from 0 without gaps, times that do not run
// backwards; tool results answer calls; a session ends with its summary.
func (t *Trace) Validate(ctx context.Context, visit func(Finding) error) (*ValidationReport, error) {
	v := &validator{visit: visit, calls: map[string]bool{}}
	if t.doc != nil {
		return v.document(t.doc)
	}
	in, limit, done, err := t.stream()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := parallelScan(ctx, newBlockReader(in, limit), nil, v.batch); err != nil {
		return nil, err
	}
	v.end()
	return &v.report, v.err
}

type validator struct {
	visit  func(Finding) error
	report ValidationReport
	err    error

	lines     int64
	envelopes int64
	bare      int64
	nextSeq   int64
	lastTs    int64
	summary   int64 // its line
	started   bool  // there was a session_start
	last      int64 // the line of the last event
	calls     map[string]bool
}

func (v *validator) found(line int64, severity, format string, args ...any) {
	if severity == severityError {
		v.report.Errors++
	} else {
		v.report.Warnings++
	}
	if v.err == nil {
		v.err = v.visit(Finding{line, severity, fmt.Sprintf(format, args...)})
	}
}

func (v *validator) batch(b *batch) error {
	problems := b.problems
	flush := func(before int32) {
		for len(problems) > 0 && problems[0].line < before {
			v.found(v.lines+int64(problems[0].line)+1, severityError, "%s", problems[0].reason)
			problems = problems[1:]
		}
	}
	for i := range b.events {
		flush(b.events[i].line)
		v.event(&b.events[i], b.data, v.lines+int64(b.events[i].line)+1)
	}
	flush(b.lines + 1)
	v.lines += int64(b.lines)
	v.report.Lines = v.lines
	return v.err
}

func (v *validator) event(ev *event, data []byte, line int64) {
	v.last = line
	if ev.bare {
		v.bare++
	} else {
		v.envelope(ev, line)
	}
	if v.envelopes > 0 && v.bare == 1 && ev.bare {
		v.found(line, severityWarning, "a bare event in a trace of envelopes")
	}
	if ev.typ.empty() {
		v.found(line, severityError, "the event has no type")
		return
	}
	if ev.kind == kindLifecycle {
		switch string(ev.typ.of(data)) {
		case trace.TypeSummary:
			v.summary = line
		case trace.TypeSessionStart:
			v.started = true
		}
		return
	}
	v.blocks(ev, data, line)
}

func (v *validator) envelope(ev *event, line int64) {
	v.envelopes++
	if ev.event.empty() {
		v.found(line, severityError, "the event of the envelope is not an object")
		return
	}
	if ev.lane == "" {
		v.found(line, severityError, "the envelope has an empty source")
	}
	switch {
	case ev.seq < v.nextSeq:
		v.found(line, severityError, "seq %d after %d: it must rise", ev.seq, v.nextSeq-1)
	case ev.seq > v.nextSeq:
		v.found(line, severityWarning, "seq jumps from %d to %d", v.nextSeq-1, ev.seq)
	}
	v.nextSeq = max(v.nextSeq, ev.seq+1)
	if ev.ts != 0 && ev.ts < v.lastTs {
		v.found(line, severityWarning, "ts %d is before that of an earlier line, %d", ev.ts, v.lastTs)
	}
	v.lastTs = max(v.lastTs, ev.ts)
}

// blocks checks that content is made of objects and that results answer calls.
func (v *validator) blocks(ev *event, data []byte, line int64) {
	for i := range ev.parts {
		p := &ev.parts[i]
		switch p.typ {
		case blockBroken:
			v.found(line, severityError, "content block %d is not an object", i)
		case blockToolUse:
			id := string(p.id.of(data))
			if id == "" {
				v.found(line, severityWarning, "a tool call without an id")
			}
			v.calls[id] = true
		case blockToolResult:
			if id := string(p.id.of(data)); !v.calls[id] {
				v.found(line, severityWarning, "a tool result for a call that was not made: %q", id)
			}
		}
	}
}

func (v *validator) end() {
	switch {
	case v.summary == 0 && v.started:
		v.found(v.lines, severityWarning, "the session has no summary: it is still running or was cut off")
	case v.summary != 0 && v.summary != v.last:
		v.found(v.last, severityWarning, "events after the summary of line %d", v.summary)
	}
}

func (v *validator) document(d *document) (*ValidationReport, error) {
	v.report.Lines = 1
	for i, raw := range d.turns {
		turn, ok := documentTurn(raw)
		switch {
		case !ok:
			v.found(1, severityError, "turn %d is not an object", i)
		case turn.Index != i:
			v.found(1, severityWarning, "turn %d has the index %d", i, turn.Index)
		case roleKinds[turn.Role] == kindOther:
			v.found(1, severityError, "turn %d has the unknown role %q", i, turn.Role)
		}
	}
	return &v.report, v.err
}
