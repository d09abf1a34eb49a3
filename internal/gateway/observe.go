package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/model/wire"
)

const (
	// maxLine is the longest line of a stream that is kept; longer lines are ignored.
	maxLine = 32 << 20
	// maxWhole bounds what is kept of a reply that is not streamed.
	maxWhole = 16 << 20
)

// observer reads on the side what a reply says about tokens, errors and its end. It keeps at most
// one line of a stream.
type observer struct {
	protocol wire.Protocol
	stream   bool

	line     []byte // the beginning of a line, or of a reply that is not streamed
	skipping bool   // the rest of the line is too long to be kept
	boundary bool   // the last line was empty: between two events
	streamed int64  // bytes of data so far
	events   int64  // events so far that say something; those that only keep the connection open do not

	deltas int64 // pieces of the reply, and their bytes of text
	text   int64

	complete bool // the reply said that it is complete
	model    string
	failure  string // the error that it reported
	tokens   tokens

	parser jsontape.Parser
}

// Write takes the next piece of the reply. It never fails.
func (o *observer) Write(p []byte) {
	if !o.stream {
		o.skipping = o.skipping || len(o.line)+len(p) > maxWhole
		if !o.skipping {
			o.line = append(o.line, p...)
		}
		return
	}
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			o.keep(p)
			return
		}
		line := p[:end]
		if len(o.line) > 0 {
			o.keep(line)
			line = o.line
		}
		if !o.skipping {
			o.take(bytes.TrimSuffix(line, []byte("\r")))
		}
		o.line, o.skipping = o.line[:0], false
		p = p[end+1:]
	}
}

// keep adds to the line that has not ended yet.
func (o *observer) keep(p []byte) {
	if len(p) > 0 {
		o.boundary = false
	}
	if o.skipping = o.skipping || len(o.line)+len(p) > maxLine; !o.skipping {
		o.line = append(o.line, p...)
	}
}

var dataField = []byte("data:")

// take reads one line of a stream. Most lines hold a piece of the reply's text and are not decoded.
func (o *observer) take(line []byte) {
	o.boundary = len(line) == 0
	data, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		return
	}
	data = bytes.TrimSpace(data)
	o.streamed += int64(len(data))
	if len(data) > maxKeepAlive || !keepsAlive(data) {
		o.events++
	}
	seen := o.protocol.Look(data)
	o.complete = o.complete || seen.Ends
	switch {
	case seen.Piece:
		o.count(data)
	case seen.Reports:
		o.decode(data)
	}
}

// maxKeepAlive bounds events that only keep the connection open.
const maxKeepAlive = 100

func keepsAlive(data []byte) bool {
	var event struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &event) != nil {
		return len(data) == 0
	}
	return slices.Contains([]string{"ping", "keepalive", "heartbeat"}, event.Type)
}

// count counts a piece of a reply, in case the reply is cut off.
func (o *observer) count(data []byte) {
	event, _ := o.parser.Parse(data)
	o.deltas++
	for name, member := range event.Get("delta").Members() {
		if start, end := member.Span(); name != "type" {
			o.text += int64(end - start)
		}
	}
}

// seen estimates how many tokens the reply had so far by its pieces: each has one or more.
func (o *observer) seen() int64 { return max(o.deltas, o.text/bytesPerToken) }

// end takes notice that the reply is over.
func (o *observer) end() {
	if !o.stream && !o.skipping {
		o.decode(o.line)
		o.streamed = int64(len(o.line))
	}
	o.line = nil
}

// reply has what counts in the events of all protocols, and in whole replies.
type reply struct {
	Type    string          `json:"type"`
	Model   string          `json:"model"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Message *reply          `json:"message"`
	// UsageMetadata and ModelVersion are Google's names.
	UsageMetadata json.RawMessage `json:"usageMetadata"`
	ModelVersion  string          `json:"modelVersion"`
	// Response is the whole reply in the events of the Responses protocol.
	Response *reply `json:"response"`

	// What the model said, as the protocols call it.
	Content    json.RawMessage `json:"content"`
	Choices    json.RawMessage `json:"choices"`
	Output     json.RawMessage `json:"output"`
	Candidates json.RawMessage `json:"candidates"`
}

// says reports whether it is a model's reply.
func (r *reply) says() bool {
	return slices.ContainsFunc(
		[]json.RawMessage{r.Content, r.Choices, r.Output, r.Candidates, r.Usage, r.UsageMetadata}, holds)
}

func (o *observer) decode(data []byte) {
	var r reply
	if json.Unmarshal(data, &r) != nil {
		return
	}
	inner := &r
	o.complete = o.complete || !o.stream && r.says()
	switch {
	case r.Response != nil:
		inner = r.Response
		switch r.Type {
		case "response.completed", "response.incomplete", "response.failed":
			o.complete = true
		}
	case r.Message != nil:
		inner = r.Message
	}
	o.model = cmp.Or(inner.Model, inner.ModelVersion, o.model)
	for _, report := range []json.RawMessage{inner.Usage, inner.UsageMetadata} {
		if holds(report) {
			o.tokens.take(o.protocol, report, r.Message != nil)
		}
	}
	if raw := inner.Error; holds(raw) {
		o.failure = wire.DecodeError([]byte(`{"error":` + string(raw) + `}`)).Error()
	}
}

func holds(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
