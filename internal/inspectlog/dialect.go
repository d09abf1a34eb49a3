package inspectlog

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/session"
)

// dialectName is the name of the dialect of samples.
const dialectName = "inspect-sample"

// Dialect decodes samples: a sample is one event, which holds the whole conversation.
func Dialect() session.Dialect {
	return session.Dialect{
		Name: dialectName,
		Recognise: func(event []byte) bool {
			return sampleForm.Get().Match(event[:min(len(event), maxHead)])
		},
		New: func() session.Decoder { return decoder{} },
	}
}

var sampleForm = lazyregexp.New(`^\s*\{\s*"id"\s*:\s*("([^"\\]|\\.)*"|-?[0-9]+)\s*,\s*"epoch"\s*:\s*[0-9]+\s*,`)

// sample is what is shown of one.
type sample struct {
	ID          json.RawMessage  `json:"id"`
	UUID        string           `json:"uuid"`
	Messages    []message        `json:"messages"`
	Events      []event          `json:"events"`
	Usage       map[string]usage `json:"model_usage"`
	Scores      map[string]score `json:"scores"`
	TotalTime   float64          `json:"total_time"`
	Error       json.RawMessage  `json:"error"`
	Limit       json.RawMessage  `json:"limit"`
	Attachments map[string]text  `json:"attachments"`
}

type message struct {
	ID        string `json:"id"`
	Role      string `json:"role"`
	Content   text   `json:"content"`
	Model     string `json:"model"`
	ToolCalls []struct {
		ID        string          `json:"id"`
		Function  string          `json:"function"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
	Error      *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// event is what happened at a time; of the model, with what it said and took.
type event struct {
	Event     string `json:"event"`
	Timestamp string `json:"timestamp"`
	Completed string `json:"completed"`
	ID        string `json:"id"` // of a call of a tool
	Output    struct {
		Choices []struct {
			Message struct {
				ID string `json:"id"`
			} `json:"message"`
		} `json:"choices"`
	} `json:"output"`
}

type score struct {
	Value       json.RawMessage `json:"value"`
	Explanation text            `json:"explanation"`
}

// text is what is said: a string, or parts of which some are thoughts. Each may be an attachment.
type text struct{ said, thought []string }

func (t *text) UnmarshalJSON(raw []byte) error {
	var whole string
	if json.Unmarshal(raw, &whole) == nil {
		t.said = []string{whole}
		return nil
	}
	var parts []struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Reasoning string `json:"reasoning"`
	}
	_ = json.Unmarshal(raw, &parts) // anything else says nothing
	for _, part := range parts {
		switch part.Type {
		case "text":
			t.said = append(t.said, part.Text)
		case "reasoning":
			t.thought = append(t.thought, part.Reasoning)
		default:
			t.said = append(t.said, "["+part.Type+"]")
		}
	}
	return nil
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

type decoder struct{}

// Decode shows a sample.
func (decoder) Decode(raw []byte, at session.Stamp, to *session.Fold) {
	var s sample
	if err := json.Unmarshal(raw, &s); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		to.ParseError()
		return
	}
	to.Identify(session.Identity{SessionID: s.UUID, Model: s.model()})
	times := s.times()
	for i := range s.Messages {
		m := &s.Messages[i]
		s.message(m, session.Origin{Stamp: at, NativeMs: times[cmp.Or(m.ToolCallID, m.ID)]}, to)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Usage)) {
		used := s.Usage[name]
		to.Usage(session.Origin{Stamp: at}, session.UsageReport{
			Key:     name,
			Model:   name,
			Tokens:  used.Tokens(),
			CostUSD: used.Cost,
		})
	}
	s.end(session.Origin{Stamp: at}, to)
}

// model names the model that answered, or the one that is charged where nobody says.
func (s *sample) model() string {
	for i := range s.Messages {
		if s.Messages[i].Model != "" {
			return s.Messages[i].Model
		}
	}
	for name := range s.Usage {
		if len(s.Usage) == 1 {
			return name
		}
	}
	return ""
}

// times are when messages came, by the ids of those of the model and of calls of tools.
func (s *sample) times() map[string]int64 {
	times := map[string]int64{}
	for i := range s.Events {
		e := &s.Events[i]
		ms := session.ParseTime(cmp.Or(e.Completed, e.Timestamp))
		if e.Event == "tool" && e.ID != "" {
			times[e.ID] = ms
		}
		for _, choice := range e.Output.Choices {
			times[choice.Message.ID] = ms
		}
	}
	delete(times, "")
	return times
}

func (s *sample) message(m *message, o session.Origin, to *session.Fold) {
	said, thought := s.resolve(m.Content.said...), s.resolve(m.Content.thought...)
	switch m.Role {
	case "assistant":
		o.MessageID = m.ID
		parts := session.AssistantMessage{Origin: o, Fold: to}
		if thought != "" {
			parts.Thinking(thought)
		}
		if said != "" {
			parts.Text(said)
		}
		for _, call := range m.ToolCalls {
			parts.Call(call.ID, call.Function, s.arguments(call.Arguments))
		}
	case "tool":
		if m.Error != nil {
			said = joined(said, m.Error.Type+": "+s.resolve(m.Error.Message))
		}
		to.ToolResult(o, session.Returned{CallID: m.ToolCallID, IsError: m.Error != nil, Content: said})
	case "system":
		to.SystemPrompt(o, "inspect", "system", said)
	case "user":
		to.Message(o, "user", said, "")
	default:
		to.Unknown()
	}
}

const attached = "attachment://"

// resolve returns the parts of a text as they were: long ones stand among the attachments.
func (s *sample) resolve(parts ...string) string {
	whole := ""
	for _, part := range parts {
		if hash, ok := strings.CutPrefix(part, attached); ok {
			if found, ok := s.Attachments[hash]; ok {
				part = strings.Join(found.said, "\n")
			}
		}
		whole = joined(whole, part)
	}
	return whole
}

// arguments returns those of a call, with their long texts.
func (s *sample) arguments(raw json.RawMessage) []byte {
	var named map[string]json.RawMessage
	if !strings.Contains(string(raw), attached) || json.Unmarshal(raw, &named) != nil {
		return raw
	}
	for name, value := range named {
		var said string
		if json.Unmarshal(value, &said) == nil && strings.HasPrefix(said, attached) {
			named[name], _ = json.Marshal(s.resolve(said)) // texts have a form
		}
	}
	whole, err := json.Marshal(named)
	if err != nil {
		return raw
	}
	return whole
}

// end shows how a sample ended and what its scorers say.
func (s *sample) end(o session.Origin, to *session.Fold) {
	final := session.Final{Outcome: session.OutcomeSuccess}
	if ended := said(s.Limit, "type"); ended != "" {
		to.Message(o, "system", "ended by a limit: "+ended, "limit")
	}
	if failed := said(s.Error, "message"); failed != "" {
		final = session.Final{Outcome: session.OutcomeError, Text: failed}
		to.Error(o, session.ErrorInfo{Kind: session.ErrorOther, Message: failed})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Scores)) {
		one := s.Scores[name]
		line := "score of " + name + ": " + string(one.Value)
		to.Message(o, "system", joined(line, s.resolve(one.Explanation.said...)), "score")
	}
	to.Final(o, final)
}

// said is a text, or the text of a member of an object.
func said(raw json.RawMessage, member string) string {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return plain
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		_ = json.Unmarshal(object[member], &plain) // anything but a text says nothing
	}
	return plain
}
