// Package trace is the record of a session: one JSON object per line, append-only, readable while
// it grows and after a crash.
//
// # The format
//
// Every line is an envelope
//
//	{"source":"agent","seq":7,"ts":1767225600000,"event":{…}}
//
// where source is the lane (a participant's name, or "orchestrator"), seq counts from 0 without
// gaps over the whole file, ts is the time of arrival in epoch milliseconds, and event is what the
// agent produced, byte for byte, after redaction. Small fields come first and the payload last, so
// that a reader can skip an event without parsing it. Traces without "ts" and files of bare events
// (no envelope at all) are read too.
//
// A line of an agent that is not a JSON object becomes {"type":"raw","text":…}; its standard error
// becomes {"type":"stderr","text":…}.
//
// # The promise
//
// Fields may be added, never renamed or removed; unknown event types pass through untouched. A file
// written by any released version stays readable. A process that is killed leaves at most its last
// line torn: readers report it as a problem and continue, and the next writer ends it with a
// newline, notes a "recovered" event, and continues the sequence. Nothing is ever truncated.
//
// # Use
//
//  1. Open a Writer on a file (or NewWriter on a stream) with a redactor.
//  2. Emit raw events under a source, or EmitValue for the orchestrator's own.
//  3. Close it.
//  4. Read it back with a Reader, line by line.
package trace
