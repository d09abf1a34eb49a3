package query

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
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

// CutOff is the finding for a trace whose session has no end.
const CutOff = "the session has no summary: it is still running or was cut off"

// Validate checks the form of every line and the order of the whole: lines are JSON objects;
// envelopes have a source, a sequence that rises from 0 without gaps, times that do not run
// backwards; tool results answer calls; a session ends with its summary.
func (t *Trace) Validate(ctx context.Context, visit func(Finding) error) (*ValidationReport, error) {
	v := &validator{visit: visit, calls: map[string]bool{}, dialects: t.opts.Dialects}
	if t.doc != nil {
		return v.document(t.doc)
	}
	if err := t.batches(ctx, plan{}, v.batch); err != nil {
		return nil, err
	}
	v.end()
	t.noEvents = !v.known
	return &v.report, v.err
}

type validator struct {
	visit  func(Finding) error
	report ValidationReport
	err    error

	envelopes int64
	bare      int64
	nextSeq   int64
	lastTs    int64
	summary   int64 // its line
	started   bool  // there was a session_start
	last      int64 // the line of the last event
	calls     map[string]bool
	dialects  session.Dialects
	known     bool // some event is of a kind that is known
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

func (v *validator) batch(b *scan.Batch) error {
	problems := b.Problems
	flush := func(before int64) {
		for len(problems) > 0 && problems[0].Line < before {
			v.found(problems[0].Line, severityError, "%s", problems[0].Reason)
			problems = problems[1:]
		}
	}
	for i := range b.Events {
		flush(b.Events[i].Line)
		v.event(&b.Events[i])
	}
	v.report.Lines += b.Lines
	flush(v.report.Lines + 1)
	return v.err
}

func (v *validator) event(ev *scan.Event) {
	line := ev.Line
	v.last = line
	if !v.known {
		_, spoken := v.dialects.Of(ev.Native)
		v.known = spoken || ev.Kind != scan.Other
	}
	if !json.Valid(ev.Raw) {
		v.found(line, severityError, "not strict JSON")
	}
	if ev.Bare {
		v.bare++
	} else {
		v.envelope(ev)
	}
	if v.envelopes > 0 && v.bare == 1 && ev.Bare {
		v.found(line, severityWarning, "a bare event in a trace of envelopes")
	}
	if len(ev.Type) == 0 {
		if !isMessage(ev.Native) {
			v.found(line, severityError, "the event has no type")
		}
		return
	}
	if ev.Kind == scan.Lifecycle {
		switch string(ev.Type) {
		case trace.TypeSummary:
			v.summary = line
		case trace.TypeSessionStart:
			v.started = true
		}
		return
	}
	v.blocks(ev)
}

// isMessage reports whether an event is a message of JSON-RPC, in which several agents speak: a
// method or the answer to one stands in place of a type. The messages to the agent are wrapped.
func isMessage(event []byte) bool {
	v, ok := jsontape.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		return false
	}
	if v.TextOf("dir") != "" {
		v = v.Get("msg")
	}
	return v.TextOf("method") != "" || v.Get("id").Exists() && (v.Get("result").Exists() || v.Get("error").Exists())
}

func (v *validator) envelope(ev *scan.Event) {
	line := ev.Line
	v.envelopes++
	if ev.Native == nil {
		v.found(line, severityError, "the event of the envelope is not an object")
		return
	}
	if ev.Lane == "" {
		v.found(line, severityError, "the envelope has an empty source")
	}
	switch {
	case ev.Seq < v.nextSeq:
		v.found(line, severityError, "seq %d after %d: it must rise", ev.Seq, v.nextSeq-1)
	case ev.Seq > v.nextSeq:
		v.found(line, severityWarning, "seq jumps from %d to %d", v.nextSeq-1, ev.Seq)
	}
	v.nextSeq = max(v.nextSeq, ev.Seq+1)
	if ev.Ts != 0 && ev.Ts < v.lastTs {
		v.found(line, severityWarning, "ts %d is before that of an earlier line, %d", ev.Ts, v.lastTs)
	}
	v.lastTs = max(v.lastTs, ev.Ts)
}

// blocks checks that content is made of objects and that results answer calls.
func (v *validator) blocks(ev *scan.Event) {
	line := ev.Line
	for i := range ev.Parts {
		p := &ev.Parts[i]
		switch p.Type {
		case scan.Broken:
			v.found(line, severityError, "content block %d is not an object", i)
		case scan.ToolUse:
			id := string(p.ID)
			if id == "" {
				v.found(line, severityWarning, "a tool call without an id")
			}
			v.calls[id] = true
		case scan.ToolResult:
			if id := string(p.ID); !v.calls[id] {
				v.found(line, severityWarning, "a tool result for a call that was not made: %q", id)
			}
		case scan.OtherPart, scan.Text, scan.Thinking:
		}
	}
}

func (v *validator) end() {
	switch {
	case v.summary == 0 && v.started:
		v.found(v.report.Lines, severityWarning, CutOff)
	case v.summary != 0 && v.summary != v.last:
		v.found(v.last, severityWarning, "events after the summary of line %d", v.summary)
	}
}

func (v *validator) document(d *document) (*ValidationReport, error) {
	v.report.Lines = 1
	for i, raw := range d.turns {
		entry, ok := documentEntry(raw)
		switch {
		case !ok:
			v.found(1, severityError, "turn %d is not an object", i)
		case entry.Index != i:
			v.found(1, severityWarning, "turn %d has the index %d", i, entry.Index)
		case !entry.Role.Known():
			v.found(1, severityError, "turn %d has the unknown role %q", i, entry.Role)
		}
	}
	return &v.report, v.err
}
