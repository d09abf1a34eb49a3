package query

import (
	"cmp"
	"encoding/json"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/session"
)

// decodedLane decodes a lane that speaks another dialect than the stream of system, assistant, user
// and result objects. Its canonical events become entries.
type decodedLane struct {
	dialect session.Dialect
	lane    *laneState
	decoder session.Decoder
	fold    *session.Fold
	// What one native event has produced so far.
	turns []*Entry
	costs []session.EnrichedEvent
}

func newDecodedLane(dialect session.Dialect, lane *laneState, prices session.Prices) *decodedLane {
	f := &decodedLane{dialect: dialect, lane: lane, decoder: dialect.New()}
	f.fold = session.NewFold(session.Options{Flat: true, OnEvent: f.took, Prices: prices})
	// not every stream names its model, but the code that started the agent knows it
	f.fold.Identify(session.Identity{Model: lane.Model})
	lane.Dialect = dialect.Name
	lane.Agent = cmp.Or(lane.Agent, string(dialect.Agent))
	return f
}

// restart begins another process of the same agent: call ids may repeat, the usage continues.
func (f *decodedLane) restart() { f.decoder = f.dialect.New() }

// decode returns the entries that one native event makes.
func (f *decodedLane) decode(event []byte, at session.Stamp) []*Entry {
	f.turns, f.costs = f.turns[:0], f.costs[:0]
	f.decoder.Decode(event, at, f.fold)
	f.attachUsage()
	return f.turns
}

func (f *decodedLane) took(e *session.EnrichedEvent) {
	if e.Kind == session.KindCost {
		if e.Usage != nil {
			f.costs = append(f.costs, *e)
		}
		return
	}
	if t := f.entry(e); t != nil {
		f.turns = append(f.turns, t)
	}
}

func (f *decodedLane) entry(e *session.EnrichedEvent) *Entry {
	t := &Entry{
		Lane:        f.lane.source(),
		TimestampMs: e.TimestampMs,
		Parent:      e.Parent,
		Line:        e.RawLine,
	}
	switch e.Kind {
	case session.KindMessage:
		f.message(t, e)
	case session.KindThinking:
		t.assistant(e, Block{Type: BlockThinking, Text: e.Text})
	case session.KindToolCall:
		t.assistant(e, callBlock(e.Tool))
	case session.KindToolResult:
		t.Role, t.IsError = RoleToolResult, e.Result.IsError
		id, content := e.Result.CallID, e.Result.Content
		t.ToolUseID, t.Result = &id, &content
		if e.Result.ExitCode != nil {
			t.ExitCode = new(*e.Result.ExitCode)
		}
	case session.KindSystemPrompt:
		t.system("system_prompt", map[string]any{"label": e.Label, "content": e.Text})
	case session.KindError:
		t.system("error", e.Error)
	default:
		return nil
	}
	return t
}

func (f *decodedLane) message(t *Entry, e *session.EnrichedEvent) {
	text := Block{Type: BlockText, Text: e.Text}
	switch e.Role {
	case "assistant":
		t.assistant(e, text)
	case "system":
		t.system(e.Label, map[string]any{"text": e.Text})
	default:
		t.Role, t.Content = RoleUser, []Block{text}
	}
}

func (t *Entry) assistant(e *session.EnrichedEvent, b Block) {
	t.Role, t.Content = RoleAssistant, []Block{b}
	if e.MessageID != "" {
		t.MessageID = new(e.MessageID)
	}
}

func (t *Entry) system(subtype string, data any) {
	t.Role = RoleSystem
	if subtype != "" {
		t.Subtype = &subtype
	}
	t.Data, _ = json.Marshal(data) // strings and numbers only: it cannot fail
}

func callBlock(call *session.ToolCall) Block {
	b := Block{
		Type:      BlockToolUse,
		Name:      call.NativeName,
		Input:     jsonenc.Compact(call.Args),
		Canonical: call.Canonical,
		Command:   call.Command,
		Paths:     call.Paths,
	}
	if call.CallID != "" {
		b.ToolUseID = new(call.CallID)
	}
	return b
}

// attachUsage gives the usage that a native event reports to the entries it belongs to: all pieces
// of the message, or, for a message without an id, the last.
func (f *decodedLane) attachUsage() {
	for _, cost := range f.costs {
		usage := *cost.Usage
		for i := len(f.turns) - 1; i >= 0; i-- {
			t := f.turns[i]
			if t.Role != RoleAssistant {
				continue
			}
			t.Usage = new(usage)
			if t.MessageID == nil {
				break
			}
		}
	}
}

// finish adds the whole lane as if it were one result.
func (f *decodedLane) finish(in *Info) {
	s := f.fold.Session()
	f.lane.Model = cmp.Or(s.Model, f.lane.Model)
	f.identify(in, s)
	in.add(f.lane, s)
	if s.Outcome == "" && s.Usage.TotalTokens == 0 {
		return
	}
	in.Results, in.usageReported = true, true
	in.Summary.Result = cmp.Or(string(s.Outcome), unknownResult)
	in.Summary.IsError = in.Summary.IsError || s.Outcome != "" && s.Outcome != session.OutcomeSuccess
	in.Summary.DurationMs += s.WallClockMs
	in.Summary.NumTurns += int64(s.Turns)
}

// identify fills the metadata of a trace that has no init event.
func (f *decodedLane) identify(in *Info, s *session.EnrichedSession) {
	if in.initLane != nil || in.Metadata.SessionID != nil {
		return
	}
	if s.SessionID != "" {
		in.Metadata.SessionID = &s.SessionID
	}
	if s.Model != "" {
		in.Metadata.Model = &s.Model
	}
}
