package query

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
)

// DocumentVersion is the version of the structured documents that this package writes.
const DocumentVersion = "1.2.0"

// maxDocument bounds what is loaded as a whole; traces are streams and have no bound.
const maxDocument = 2 << 30

// documentHead is how much of a file is looked at to tell whether it is a document.
const documentHead = 64 << 10

// document is a structured document: one JSON value that an earlier run of this tool, or the
// reference, made of a trace. It is small enough to be held.
type document struct {
	raw     []byte
	version *string
	turns   []json.RawMessage
	info    Info
}

// openDocument returns nil for a file that is not a structured document.
func openDocument(path string) (*document, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, err // what comes out of a pipe is a stream, and must not be touched before it is read
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, documentHead)
	n, _ := io.ReadFull(file, head)
	if !mayBeDocument(head[:n]) {
		return nil, nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("%s: a structured document of more than %d bytes", path, maxDocument)
	}
	return parseDocument(raw), nil
}

// mayBeDocument looks at the beginning of a file: a structured document names its turns, or starts
// with its version, or is spread over lines none of which is an object by itself.
func mayBeDocument(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, byteOrderMark))
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	s := scanner{b: head}
	found := false
	complete := s.object(func(key span, _ bool) bool {
		switch string(key.of(head)) {
		case "turns", "version", "metadata":
			found = true
		}
		return !found && s.skip()
	})
	return found && !complete
}

func parseDocument(raw []byte) *document {
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, byteOrderMark))
	if !validJSON(raw) || raw[0] != '{' || !truthy(memberOf(raw, "turns")) {
		return nil
	}
	d := &document{raw: raw, version: memberOptional(raw, "version")}
	d.info = Info{
		Version: d.version,
		wants:   func(string) bool { return true },
		lanes:   map[string]*laneState{},
		results: newResults(),
	}
	if init := memberOf(raw, "initEvent"); len(init) > 0 && init[0] == '{' {
		d.info.InitEvent = cloneRaw(init)
	}
	d.info.Metadata.Tools = json.RawMessage("[]")
	_ = json.Unmarshal(memberOf(raw, "metadata"), &d.info.Metadata) // what does not fit stays empty
	d.info.Summary, d.info.Results = documentSummary(memberOf(raw, "summary"))
	d.info.Verdict, d.info.DiscussionID = memberText(raw, "verdict"), memberText(raw, "discussionId")
	s := scanner{b: memberOf(raw, "turns")}
	s.array(func() bool {
		turn, ok := s.value()
		if ok {
			d.turns = append(d.turns, turn.of(s.b))
		}
		return ok
	})
	return d
}

func documentSummary(raw []byte) (Summary, bool) {
	s := Summary{Result: "unknown"}
	if text := memberText(raw, "result"); text != "" {
		s.Result = text
	}
	s.IsError = string(memberOf(raw, "isError")) == "true"
	s.TotalCostUSD = parseFloat(memberOf(raw, "totalCostUsd"))
	s.DurationMs, s.NumTurns = parseInt(memberOf(raw, "durationMs")), parseInt(memberOf(raw, "numTurns"))
	if usage := memberOf(raw, "tokenUsage"); len(usage) > 0 && usage[0] == '{' {
		s.TokenUsage = &Tokens{}
		_ = json.Unmarshal(usage, s.TokenUsage)
	}
	if models := memberOf(raw, "modelUsage"); len(models) > 0 && models[0] == '{' {
		s.ModelUsage = parseModelUsage(models)
	}
	return s, s.Result != "unknown" || s.TokenUsage != nil
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

// walk shows the turns of the document.
func (d *document) walk(ctx context.Context, w *walker) error {
	info := d.info
	info.wants, info.lanes = w.trace.opts.wants, map[string]*laneState{}
	w.info = &info
	for i, raw := range d.turns {
		if err := ctx.Err(); err != nil {
			return err
		}
		turn, ok := documentTurn(raw)
		if !ok {
			info.Problems.add(1, fmt.Sprintf("turn %d is not an object", i), false)
			continue
		}
		bare := turn.Lane == nil
		l := info.lane(turn.LaneName(), bare)
		w.next = turn.Index
		if l.wanted && turn.Role == RoleUser && info.TaskPrompt == nil {
			text := turn.Text("\n")
			info.TaskPrompt = &text
		}
		w.entry = Entry{turn: turn, Line: 1, hit: true}
		if err := w.show(l, turn.Role); err != nil {
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

// documentTurn reads one turn of a document. It is printed as it stands; the fields are for
// questions.
func documentTurn(raw []byte) (*Turn, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	t := &Turn{
		verbatim: raw,
		Index:    int(parseInt(memberOf(raw, "index"))),
		Role:     Role(memberText(raw, "role")),
		Line:     1,
	}
	t.Lane, t.Parent = memberOptional(raw, "source"), memberText(raw, "parentToolUseId")
	t.TimestampMs = parseInt(memberOf(raw, "timestampMs"))
	t.Subtype, t.Data = memberOptional(raw, "subtype"), memberOf(raw, "data")
	t.MessageID, t.ToolUseID = memberOptional(raw, "messageId"), memberOptional(raw, "toolUseId")
	t.IsError = string(memberOf(raw, "isError")) == "true"
	if usage := memberOf(raw, "usage"); len(usage) > 0 && usage[0] == '{' {
		t.Usage = &Tokens{}
		_ = json.Unmarshal(usage, t.Usage)
	}
	if t.Role == RoleToolResult {
		t.Result = documentResult(memberOf(raw, "content"))
		return t, true
	}
	s := scanner{b: memberOf(raw, "content")}
	s.array(func() bool {
		block, ok := s.value()
		if ok && block.of(s.b)[0] == '{' {
			t.Content = append(t.Content, documentBlock(block.of(s.b)))
		}
		return ok
	})
	return t, true
}

func documentResult(content []byte) *string {
	if len(content) == 0 {
		return nil
	}
	text := string(content)
	if content[0] == '"' {
		text = unescape(content[1 : len(content)-1])
	}
	return &text
}

func documentBlock(raw []byte) Block {
	b := Block{
		Type:      memberText(raw, "type"),
		Name:      memberText(raw, "name"),
		ToolUseID: memberOptional(raw, "toolUseId"),
		Raw:       raw,
	}
	if input := memberOf(raw, "input"); input != nil {
		b.Input = input
	}
	switch b.Type {
	case BlockText:
		b.Text = memberText(raw, "text")
	case BlockThinking:
		b.Text = memberText(raw, "thinking")
	}
	return b
}
