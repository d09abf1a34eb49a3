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
func appendEnvelope(line []byte, source string, seq int64, ts, event []byte) []byte {
	line = append(line, `{"source":`...)
	line = AppendString(line, source)
	line = append(line, `,"seq":`...)
	line = strconv.AppendInt(line, seq, 10)
	line = append(line, `,"ts":`...)
	line = append(line, ts...)
	line = append(line, `,"event":`...)
	line = append(line, event...)
	return append(line, '}', '\n')
}

// AppendString appends a JSON string. Like everything this package writes it leaves <, > and & as they are, and makes bytes that are no UTF-8 readable.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	clean := 0 // s[clean:i] needs no escaping
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[clean:i]...)
			b = appendEscaped(b, c)
			i++
			clean = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[clean:i]...), `\ufffd`...)
			clean = i + size
		case r == '\u2028' || r == '\u2029': // valid JSON, but line ends to some readers
			b = append(append(b, s[clean:i]...), `\u202`...)
			b = append(b, hexDigits[r&0xf])
			clean = i + size
		}
		i += size
	}
	b = append(b, s[clean:]...)
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
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
