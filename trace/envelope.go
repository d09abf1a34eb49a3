package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// Envelope is one line of a trace.
type Envelope struct {
	Source string
	Seq    int64
	// Ts is the time of arrival in epoch milliseconds; 0 in traces that do not carry it.
	Ts int64
	// Event is the payload as it is in the file. A Reader reuses the bytes for the next line.
	Event []byte
	// Bare is true for a line that is an event by itself, without an envelope.
	Bare bool
}

// errNotObject is the error for a line that is not a JSON object, or not JSON at all.
var errNotObject = errors.New("not a JSON object")

// appendEnvelopeHead writes a line up to its event, which must be a JSON object on a single line
// and is followed by a brace and a newline.
func appendEnvelopeHead(line []byte, source string, seq, ts int64) []byte {
	line = append(line, `{"source":`...)
	line = jsonenc.AppendString(line, source)
	line = append(line, `,"seq":`...)
	line = strconv.AppendInt(line, seq, 10)
	line = append(line, `,"ts":`...)
	line = strconv.AppendInt(line, ts, 10)
	return append(line, `,"event":`...)
}

// ParseLine takes one line apart without decoding its event. A line in the order that Writer uses
// is split by position; any other goes through a JSON decoder. It fails only on lines that are not
// a JSON object. It does not validate the event of a line in Writer's order; the code that decodes
// the event does.
func ParseLine(line []byte) (Envelope, error) { return ParseNext(line, "") }

// ParseNext is ParseLine for readers of many lines: where the source is the one of the line before,
// its name is not copied again.
func ParseNext(line []byte, source string) (Envelope, error) {
	line = bytes.TrimSpace(line)
	if env, ok := parseCanonical(line, source); ok {
		return env, nil
	}
	return parseAny(line)
}

func parseCanonical(line []byte, known string) (Envelope, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"source":"`))
	if !ok {
		return Envelope{}, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return Envelope{}, false
	}
	env := Envelope{Source: known}
	if string(rest[:end]) != known {
		env.Source = string(rest[:end])
	}
	if rest, ok = bytes.CutPrefix(rest[end+1:], []byte(`,"seq":`)); !ok {
		return Envelope{}, false
	}
	if env.Seq, rest, ok = cutInt(rest); !ok {
		return Envelope{}, false
	}
	if after, hasTs := bytes.CutPrefix(rest, []byte(`,"ts":`)); hasTs {
		if env.Ts, rest, ok = cutInt(after); !ok {
			return Envelope{}, false
		}
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"event":{`)); !ok || len(rest) < 2 ||
		!bytes.HasSuffix(rest, []byte("}}")) {
		return Envelope{}, false
	}
	env.Event = line[len(line)-len(rest)-1 : len(line)-1]
	return env, true
}

func cutInt(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' && i < 18 {
		n = n*10 + int64(b[i]-'0')
		i++
	}
	return n, b[i:], i > 0
}

// parseAny follows the rule for telling envelopes from bare events: an envelope has an event, has
// no type, and its source is a string.
func parseAny(line []byte) (Envelope, error) {
	if len(line) == 0 || line[0] != '{' {
		return Envelope{}, errNotObject
	}
	var fields struct {
		Source json.RawMessage `json:"source"`
		Seq    json.Number     `json:"seq"`
		Ts     json.Number     `json:"ts"`
		Type   json.RawMessage `json:"type"`
		Event  json.RawMessage `json:"event"`
	}
	var source string
	if err := json.Unmarshal(line, &fields); err != nil {
		if json.Valid(line) { // seq or ts of an unexpected kind: a foreign event
			return Envelope{Event: line, Bare: true}, nil
		}
		return Envelope{}, err
	}
	isEnvelope := fields.Event != nil && fields.Type == nil && json.Unmarshal(fields.Source, &source) == nil
	if !isEnvelope {
		return Envelope{Event: line, Bare: true}, nil
	}
	seq, _ := fields.Seq.Int64()
	ts, _ := fields.Ts.Int64()
	return Envelope{
		Source: source,
		Seq:    seq,
		Ts:     ts,
		Event:  fields.Event,
	}, nil
}
