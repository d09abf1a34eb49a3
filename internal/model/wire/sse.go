package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

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
