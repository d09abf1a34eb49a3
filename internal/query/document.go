package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/fit-eval/fit/internal/jsondoc"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// DocumentVersion is the version of the structured documents that this package writes.
const DocumentVersion = "1.2.0"

// maxDocument bounds what is loaded as a whole; traces are streams and have no bound.
const maxDocument = 2 << 30

// documentHead is how much of a file is read to recognise a document.
const documentHead = 64 << 10

// document is a structured document: one JSON value that an earlier run of this tool, or the
// reference, made from a trace. It is small enough to be held.
type document struct {
	storedDocument
	raw   []byte
	turns []json.RawMessage
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// inspect looks at the beginning of a regular file. It loads a structured document, and sets
// seekable for anything else that is not packed.
func (t *Trace) inspect() error {
	file, err := os.Open(t.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := make([]byte, documentHead)
	n, _ := io.ReadFull(file, head) // less is enough
	foreign := t.mayBeForeign(head[:n])
	if !foreign && !mayBeDocument(head[:n]) {
		t.seekable = !trace.Packed(head[:n])
		return nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	if err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	if len(raw) > maxDocument {
		return fmt.Errorf("%s: a structured document of more than %d bytes", t.Path, maxDocument)
	}
	if foreign {
		t.lines = foreignLines(raw)
	} else {
		t.doc = parseDocument(raw)
	}
	t.seekable = t.doc == nil && t.lines == nil
	return nil
}

// mayBeForeign looks at the beginning of a file: whether it is a trace of another harness, one
// document or a list of them over several lines.
func (t *Trace) mayBeForeign(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, byteOrderMark))
	first, _, more := bytes.Cut(head, []byte("\n"))
	if len(head) == 0 || head[0] != '{' && head[0] != '[' || head[0] == '{' && (!more || json.Valid(first)) {
		return false
	}
	if head[0] == '[' {
		head = bytes.TrimSpace(head[1:])
	}
	_, known := t.opts.Dialects.Of(head)
	return known
}

// foreignLines puts each document of a file in one line; nil if it is broken.
func foreignLines(raw []byte) []byte {
	raw, err := jsondoc.Compact(bytes.TrimPrefix(raw, byteOrderMark))
	if err != nil || raw[0] == '{' {
		return raw
	}
	var documents []json.RawMessage
	if json.Unmarshal(raw, &documents) != nil {
		return nil
	}
	var lines []byte
	for _, document := range documents {
		lines = append(append(lines, document...), '\n')
	}
	return lines
}

// mayBeDocument looks at the beginning of a file: the first members of a structured document are
// its version, its metadata or its turns.
func mayBeDocument(head []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, byteOrderMark)))
	if bracket, err := decoder.Token(); err != nil || bracket != json.Delim('{') {
		return false
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return false
		}
		switch key {
		case "turns", "version", "metadata":
			return true
		}
		var skipped json.RawMessage
		if decoder.Decode(&skipped) != nil {
			return false
		}
	}
	return false
}

// storedDocument is a document as it is in a file.
type storedDocument struct {
	Version      *string         `json:"version"`
	Metadata     Metadata        `json:"metadata"`
	InitEvent    json.RawMessage `json:"initEvent"`
	Turns        json.RawMessage `json:"turns"`
	Summary      Summary         `json:"summary"`
	Verdict      string          `json:"verdict"`
	DiscussionID string          `json:"discussionId"`
}

// decodeLenient fills what fits; members of another type stay empty.
func decodeLenient(raw []byte, into any) bool {
	var mistyped *json.UnmarshalTypeError
	err := json.Unmarshal(raw, into)
	return err == nil || errors.As(err, &mistyped)
}

func parseDocument(raw []byte) *document {
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, byteOrderMark))
	stored := storedDocument{Summary: Summary{Result: unknownResult}}
	stored.Metadata.Tools = json.RawMessage("[]")
	if !decodeLenient(raw, &stored) || len(stored.Turns) == 0 {
		return nil
	}
	switch string(stored.Turns) {
	case "null", "false", `""`, "0":
		return nil
	}
	d := &document{raw: raw}
	_ = json.Unmarshal(stored.Turns, &d.turns) // anything but a list has no turns
	stored.Turns = nil                         // which may be large
	d.storedDocument = stored
	return d
}

// preChange reports whether a document was made before usage was counted by message.
func preChange(version *string) bool {
	if version == nil {
		return false
	}
	var parts [2]int
	for i, part := range bytes.SplitN([]byte(*version), []byte("."), 3) {
		if i < len(parts) {
			parts[i], _ = strconv.Atoi(string(part))
		}
	}
	return parts[0] < 1 || parts[0] == 1 && parts[1] < 2
}

// walk shows the entries of the document.
func (d *document) walk(ctx context.Context, w *walker) error {
	info := w.info
	info.Metadata, info.Summary, info.DiscussionID = d.Metadata, d.Summary, d.DiscussionID
	info.Results = d.Summary.Result != unknownResult || d.Summary.TokenUsage != nil
	if bytes.HasPrefix(d.InitEvent, []byte("{")) {
		info.InitEvent = redactRaw(info.redactor, d.InitEvent)
	}
	info.Verdict = info.redactor.String(d.Verdict)
	for i, raw := range d.turns {
		if err := ctx.Err(); err != nil {
			return err
		}
		entry, ok := documentEntry(raw)
		if !ok {
			info.Problems.add(1, fmt.Sprintf("turn %d is not an object", i), false)
			continue
		}
		w.next = entry.Index
		l := info.lane(entry.LaneName(), entry.Lane == nil)
		if err := w.showEntry(l, entry.redact(w.trace.opts.Redactor)); err != nil {
			return err
		}
	}
	for _, l := range info.order {
		if l.wanted {
			info.Lanes = append(info.Lanes, l.LaneInfo)
		}
	}
	return nil
}

// storedEntry is an entry as it is in a document.
type storedEntry struct {
	Index       int             `json:"index"`
	Role        Role            `json:"role"`
	Source      *string         `json:"source"`
	Parent      string          `json:"parentToolUseId"`
	TimestampMs int64           `json:"timestampMs"`
	Subtype     *string         `json:"subtype"`
	Data        json.RawMessage `json:"data"`
	MessageID   *string         `json:"messageId"`
	ToolUseID   *string         `json:"toolUseId"`
	IsError     bool            `json:"isError"`
	Usage       *UsageJSON      `json:"usage"`
	Content     json.RawMessage `json:"content"`
}

// documentEntry reads one entry of a document. It is printed as it is; the fields are for
// questions.
func documentEntry(raw []byte) (*Entry, bool) {
	var stored storedEntry
	if len(raw) == 0 || raw[0] != '{' || !decodeLenient(raw, &stored) {
		return nil, false
	}
	t := &Entry{
		verbatim:    raw,
		Index:       stored.Index,
		Role:        stored.Role,
		Lane:        stored.Source,
		Line:        1,
		Parent:      stored.Parent,
		TimestampMs: stored.TimestampMs,
		Subtype:     stored.Subtype,
		Data:        stored.Data,
		MessageID:   stored.MessageID,
		ToolUseID:   stored.ToolUseID,
		IsError:     stored.IsError,
		Usage:       (*session.TokenUsage)(stored.Usage),
	}
	if t.Role == RoleToolResult {
		t.Result = resultText(stored.Content)
		return t, true
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(stored.Content, &blocks) // anything but a list has none
	for _, block := range blocks {
		if len(block) > 0 && block[0] == '{' {
			t.Content = append(t.Content, documentBlock(block))
		}
	}
	return t, true
}

func documentBlock(raw []byte) Block {
	var stored struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Name      string          `json:"name"`
		ToolUseID *string         `json:"toolUseId"`
		Input     json.RawMessage `json:"input"`
	}
	decodeLenient(raw, &stored)
	b := Block{
		Type:      stored.Type,
		Name:      stored.Name,
		ToolUseID: stored.ToolUseID,
		Input:     stored.Input,
		Raw:       raw,
	}
	switch b.Type {
	case BlockText:
		b.Text = stored.Text
	case BlockThinking:
		b.Text = stored.Thinking
	}
	return b
}
