package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// Envelope is one line of a trace.
type Envelope struct {
	Source string
	Seq    int64
	// Ts is the time of arrival in epoch milliseconds; 0 in traces that do not carry it.
	Ts int64
	// Event is the payload as it stands in the file. A Reader reuses the bytes for the next line.
	Event []byte
	// Bare is true for a line that is an event by itself, without an envelope.
	Bare bool
}

// errNotObject is what is wrong with a line that is JSON of the wrong kind, or no JSON at all.
var errNotObject = errors.New("not a JSON object")

// appendEnvelope writes one line, newline included. The event must be a JSON object on a single line.
func appendEnvelope(line []byte, source string, seq, ts int64, event []byte) []byte {
	line = append(line, `{"source":`...)
	line = appendJSONString(line, source)
	line = append(line, `,"seq":`...)
	line = strconv.AppendInt(line, seq, 10)
	line = append(line, `,"ts":`...)
	line = strconv.AppendInt(line, ts, 10)
	line = append(line, `,"event":`...)
	line = append(line, event...)
	return append(line, '}', '\n')
}

func appendJSONString(b []byte, s string) []byte {
	if plainString(s) {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	quoted, _ := json.Marshal(s) // a string always marshals
	return append(b, quoted...)
}

func plainString(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ParseLine takes one line apart without decoding its event. A line in the order that Writer uses is split by position; any other goes through a JSON
// decoder. It fails only on lines that are no JSON object; the event of a line in Writer's order is not validated here: whoever decodes it does that.
func ParseLine(line []byte) (Envelope, error) {
	line = bytes.TrimSpace(line)
	if env, ok := parseCanonical(line); ok {
		return env, nil
	}
	return parseAny(line)
}

func parseCanonical(line []byte) (Envelope, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"source":"`))
	if !ok {
		return Envelope{}, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return Envelope{}, false
	}
	env := Envelope{Source: string(rest[:end])}
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
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"event":{`)); !ok || len(rest) < 2 || !bytes.HasSuffix(rest, []byte("}}")) {
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

// parseAny follows the rule for telling envelopes from bare events: an envelope has an event, has no type, and its source is a string.
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
		if json.Valid(line) { // seq or ts of an unexpected kind: somebody else's event
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
	return Envelope{Source: source, Seq: seq, Ts: ts, Event: fields.Event}, nil
}
