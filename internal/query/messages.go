package query

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/trace"
)

// The kinds of messages between participants.
const (
	MessageAsk      = "ask"
	messageAnswer   = "answer"
	messageAnnounce = "announce"
)

// Message is something that one participant of a team said to others.
type Message struct {
	Line        int64    `json:"line"`
	TimestampMs int64    `json:"timestampMs,omitempty"`
	Kind        string   `json:"kind"`
	From        string   `json:"from"`
	To          []string `json:"to"`
	AskIDs      []int64  `json:"askIds,omitempty"`
	Text        string   `json:"text"`
	Answers     []Answer `json:"answers,omitempty"`
}

// Answer is the answer to an ask.
type Answer struct {
	Line        int64  `json:"line"`
	TimestampMs int64  `json:"timestampMs,omitempty"`
	From        string `json:"from"`
	AskID       int64  `json:"askId"`
	Text        string `json:"text"`
}

// Messages lists who asked whom what, and the answers. They are what the orchestrator recorded; if
// it recorded none, they come from the tool calls of the participants.
func (t *Trace) Messages(ctx context.Context) ([]Message, error) {
	m := &messageBook{
		redactor:     t.opts.Redactor,
		officialAsks: map[int64]int{},
		asks:         map[int64]int{},
		calls:        map[string]int{},
	}
	lanes := t.opts.Lanes
	all := *t
	all.opts.Lanes = nil // a message concerns two lanes: it is filtered by either end below
	p := plan{visit: m.call, lifecycle: m.noted}
	if _, err := all.walk(ctx, p); err != nil {
		return nil, err
	}
	t.problems, t.noEvents = all.problems, all.noEvents
	messages := m.messages
	if m.orchestrated {
		messages = m.official
	}
	kept := []Message{}
	for _, message := range messages {
		if message.concerns(lanes) {
			kept = append(kept, message)
		}
	}
	return kept, nil
}

func (m *Message) concerns(lanes []string) bool {
	return len(lanes) == 0 || slices.ContainsFunc(lanes, func(lane string) bool {
		return m.From == lane || slices.Contains(m.To, lane)
	})
}

type messageBook struct {
	redactor     Redactor
	orchestrated bool
	official     []Message // as the orchestrator noted them
	officialAsks map[int64]int

	messages []Message // from the tool calls
	asks     map[int64]int
	calls    map[string]int // asks by the id of their tool call
}

// noted adds a message event of the orchestrator.
func (m *messageBook) noted(ev *scan.Event) {
	if string(ev.Type) != trace.TypeMessage {
		return
	}
	m.orchestrated = true
	var e struct {
		Kind, From, To, Text string
		AskID                int64
	}
	if json.Unmarshal(ev.Native, &e) != nil {
		return
	}
	e.Text = m.redactor.String(e.Text)
	if e.Kind == messageAnswer {
		if n, ok := m.officialAsks[e.AskID]; ok {
			m.official[n].Answers = append(m.official[n].Answers, Answer{ev.Line, ev.Ts, e.From, e.AskID, e.Text})
			return
		}
	}
	message := Message{
		Line:        ev.Line,
		TimestampMs: ev.Ts,
		Kind:        e.Kind,
		From:        e.From,
		To:          []string{},
		Text:        e.Text,
	}
	if e.To != "" {
		message.To = []string{e.To}
	}
	if e.AskID != 0 {
		message.AskIDs = []int64{e.AskID}
	}
	if e.Kind == MessageAsk {
		m.officialAsks[e.AskID] = len(m.official)
	}
	m.official = append(m.official, message)
}

// call adds an entry of a participant that uses one of the team's tools.
func (m *messageBook) call(e *Cursor) error {
	switch e.Role {
	case RoleAssistant:
		if !e.usesAny() {
			return nil
		}
		entry := e.Entry()
		for i := range entry.Content {
			if b := &entry.Content[i]; b.Type == BlockToolUse {
				m.used(entry, b)
			}
		}
	case RoleToolResult:
		if n, ok := m.calls[e.inLane(e.resultID())]; ok {
			m.asked(n, textOf(e.Entry().Result))
		}
	}
	return nil
}

func (m *messageBook) used(entry *Entry, b *Block) {
	message := Message{
		Line:        entry.Line,
		TimestampMs: entry.TimestampMs,
		From:        entry.LaneName(),
		To:          []string{},
	}
	switch teamTool(b.Name) {
	case "Ask":
		message.Kind, message.Text = MessageAsk, textOf(b.input("question"))
		if to := textOf(b.input("to")); to != "" {
			message.To = []string{to}
		}
		if b.ToolUseID != nil {
			m.calls[laneKey(entry.Lane, *b.ToolUseID)] = len(m.messages)
		}
	case "Announce":
		message.Kind, message.Text = messageAnnounce, textOf(b.input("message"))
	case "Answer":
		message.Kind, message.Text = messageAnswer, textOf(b.input("message"))
		if m.answered(entry, b, message.Text) {
			return
		}
	default:
		return
	}
	m.messages = append(m.messages, message)
}

// teamTool returns the bare name of a tool of the orchestration server.
func teamTool(name string) string {
	if rest, ok := strings.CutPrefix(name, "mcp__orchestration__"); ok {
		return rest
	}
	return ""
}

// asked learns the ids that an ask was given.
func (m *messageBook) asked(n int, result string) {
	var reply struct {
		AskIDs []int64 `json:"askIds"`
	}
	start := strings.Index(result, `{"askIds"`)
	if start < 0 {
		start = strings.IndexByte(result, '{')
	}
	text := result
	if strings.HasPrefix(result, "[") { // content blocks: the text of the first one
		var blocks []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal([]byte(result), &blocks) == nil && len(blocks) > 0 {
			text, start = blocks[0].Text, 0
		}
	}
	if start < 0 || json.Unmarshal([]byte(text[min(start, len(text)):]), &reply) != nil {
		return
	}
	m.messages[n].AskIDs = reply.AskIDs
	for _, id := range reply.AskIDs {
		m.asks[id] = n
	}
}

// answered adds an answer to its ask. Without an id it belongs to the only open ask of the one who
// answers.
func (m *messageBook) answered(entry *Entry, b *Block, text string) bool {
	from := entry.LaneName()
	var input struct {
		AskID int64 `json:"askId"`
	}
	_ = json.Unmarshal(b.Input, &input) // without an id there is another way
	id := input.AskID
	n, ok := m.asks[id]
	if !ok {
		open := 0
		for i := range m.messages {
			ask := &m.messages[i]
			if ask.Kind == MessageAsk && len(ask.Answers) == 0 && (len(ask.To) == 0 || ask.To[0] == from) &&
				ask.From != from {
				n, open = i, open+1
			}
		}
		if open != 1 {
			return false
		}
	}
	m.messages[n].Answers = append(m.messages[n].Answers, Answer{entry.Line, entry.TimestampMs, from, id, text})
	return true
}
