package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxEventSize bounds one server-sent event. A model's reply is far smaller; a server that sends
// more is not a model.
const maxEventSize = 32 << 20

// ErrEventTooLarge is returned by EventReader.Next for an event over maxEventSize.
var ErrEventTooLarge = errors.New("server-sent event is larger than 32 MiB")

// Event is one server-sent event. An event without a name carries data only.
type Event struct {
	Name string
	Data []byte
	// Delta marks an event that carries a piece of the reply's content; it is set by the functions
	// that cut a reply into events, for servers that pace or spoil a stream, and is not part of the
	// wire format.
	Delta bool
}

// WriteTo writes the event in the text/event-stream format.
func (e Event) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	if e.Name != "" {
		fmt.Fprintf(&b, "event: %s\n", e.Name)
	}
	for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.WriteTo(w)
}

// EventReader reads server-sent events. An event that the end of the stream cuts short is dropped,
// as the standard demands.
type EventReader struct {
	r       *bufio.Reader
	began   bool
	afterCR bool // the last line was ended by a CR, so an LF that follows belongs to it
}

// NewEventReader returns a reader of the events in r.
func NewEventReader(r io.Reader) *EventReader { return &EventReader{r: bufio.NewReader(r)} }

// Next returns the next event that carries data, or io.EOF at the end of the stream. The event's
// data is the caller's to keep.
func (er *EventReader) Next() (Event, error) {
	var event Event
	var data []byte
	hasData := false
	for {
		line, err := er.line(maxEventSize - len(data))
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if hasData {
				event.Data = data
				return event, nil
			}
			event.Name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			event.Name = string(value)
		case "data":
			if hasData {
				data = append(data, '\n')
			}
			data = append(data, value...)
			hasData = true
		}
	}
}

// line reads one line ended by LF, CRLF or CR, without its end. A last line without an end is
// dropped.
func (er *EventReader) line(limit int) ([]byte, error) {
	if !er.began {
		er.began = true
		if bom, err := er.r.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" {
			_, _ = er.r.Discard(3)
		}
	}
	var line []byte
	for {
		if _, err := er.r.Peek(1); err != nil {
			return nil, err
		}
		chunk, _ := er.r.Peek(er.r.Buffered())
		if er.afterCR {
			er.afterCR = false
			if chunk[0] == '\n' {
				_, _ = er.r.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			end = len(chunk)
		}
		if len(line)+end > limit {
			return nil, ErrEventTooLarge
		}
		line = append(line, chunk[:end]...)
		if end == len(chunk) {
			_, _ = er.r.Discard(end)
			continue
		}
		// Whether an LF follows a CR is looked at with the next line: waiting for it here could
		// hold an event back until the one after it.
		er.afterCR = chunk[end] == '\r'
		_, _ = er.r.Discard(end + 1)
		return line, nil
	}
}

// jsonEvent makes an event of a value that is known to marshal.
func jsonEvent(name string, delta bool, value any) Event {
	data, err := json.Marshal(value)
	if err != nil {
		data = []byte(`{"type":"error","error":{"type":"encoding_error","message":"reply cannot be encoded"}}`)
	}
	return Event{Name: name, Data: data, Delta: delta}
}

// pieces cuts s into parts of about pieceSize bytes at rune boundaries, the way a model's tokens
// arrive.
func pieces(s string) []string {
	var out []string
	for len(s) > 0 {
		end := min(pieceSize, len(s))
		for end < len(s) && s[end]&0xC0 == 0x80 {
			end++
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// pieceSize is the size of a streamed delta in bytes.
const pieceSize = 40

// maxBlocks bounds the indices a stream may name, so that a hostile one cannot make us allocate at
// will.
const maxBlocks = 4096
