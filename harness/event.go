package harness

import (
	"strconv"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/trace"
)

// event is one change of a session's state. Live code commits it, which stages its line and applies
// it; replay decodes the line and applies it. The two ways meet in apply, so that what is rebuilt
// from a trace is what was there.
type event interface {
	apply(s *state)
	trace.Appender
}

// The types of events beyond those that package trace names.
const (
	typeUndelivered  = "undelivered"
	typeRefusal      = "refusal"
	typeConversation = "conversation"
	typeConclusion   = "conclusion"
	typeReply        = "reply"
	typeRFC          = "rfc"
	typeAdvisorStart = "advisor_start"
	typeRunnerError  = "runner_error"
	typeLimit        = "limit"
	typeQuiescence   = "quiescence"
	typeResumed      = "resumed"
	typeInboxError   = "inbox_error"
	typeWarning      = "warning"
)

// encode writes the line of an event that is not worth an encoder of its own.
func encode(b []byte, value any) []byte {
	line, err := jsonenc.Marshal(value)
	if err != nil { // only plain structs come here
		panic("harness: encode event: " + err.Error())
	}
	return append(b, line...)
}

// messageEvent puts a message on the bus. It also opens and closes asks: an ask exists from the
// line of its message on, and ends with the line of its answer.
type messageEvent struct{ *Message }

func (e messageEvent) AppendJSON(b []byte) []byte {
	b = append(b, `{"type":"message","id":`...)
	b = strconv.AppendInt(b, e.ID, 10)
	b = append(b, `,"kind":"`...)
	b = append(b, e.Kind...)
	b = append(b, `","from":`...)
	b = jsonenc.AppendString(b, e.From)
	b = append(b, `,"to":`...)
	b = jsonenc.AppendString(b, e.To)
	b = appendOptional(b, `,"askId":`, e.AskID)
	b = appendOptional(b, `,"deadlineMs":`, e.DeadlineMs)
	b = appendOptional(b, `,"inboxSeq":`, e.InboxSeq)
	if len(e.Reminds) > 0 {
		b = appendIDs(append(b, `,"reminds":`...), e.Reminds)
	}
	if e.Call != "" {
		b = jsonenc.AppendString(append(b, `,"call":`...), e.Call)
	}
	b = append(b, `,"text":`...)
	b = jsonenc.AppendString(b, e.Text)
	return append(b, '}')
}

func appendOptional(b []byte, key string, value int64) []byte {
	if value == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), value, 10)
}

func appendIDs(b []byte, ids []int64) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return append(b, ']')
}

// turnStartEvent says that a participant is about to be prompted.
type turnStartEvent struct {
	Agent string `json:"agent"`
	Turn  int64  `json:"turn"`
}

func (e turnStartEvent) AppendJSON(b []byte) []byte {
	b = jsonenc.AppendString(append(b, `{"type":"turn_start","agent":`...), e.Agent)
	b = strconv.AppendInt(append(b, `,"turn":`...), e.Turn, 10)
	return append(b, '}')
}

// deliveryEvent says which messages a participant gets in a turn. It is on disk before the
// participant gets them.
type deliveryEvent struct {
	To   string  `json:"to"`
	Turn int64   `json:"turn"`
	IDs  []int64 `json:"ids"`
	// Redelivery marks messages that the participant may have seen before: after a failed turn, or
	// after a crash.
	Redelivery bool `json:"redelivery,omitempty"`

	batch []*Message // of a live delivery, already taken from the bus
}

func (e deliveryEvent) AppendJSON(b []byte) []byte {
	b = jsonenc.AppendString(append(b, `{"type":"delivery","to":`...), e.To)
	b = strconv.AppendInt(append(b, `,"turn":`...), e.Turn, 10)
	b = appendIDs(append(b, `,"ids":`...), e.IDs)
	if e.Redelivery {
		b = append(b, `,"redelivery":true`...)
	}
	return append(b, '}')
}

// turnEndEvent says how a turn ended and what it consumed.
type turnEndEvent struct {
	Agent     string   `json:"agent"`
	Turn      int64    `json:"turn"`
	Outcome   string   `json:"outcome"`
	SessionID string   `json:"sessionId,omitempty"`
	Tokens    int64    `json:"tokens,omitempty"`
	CostUSD   *float64 `json:"costUsd,omitempty"`
	Steps     int      `json:"steps,omitempty"` // model turns inside this turn
	TookMs    int64    `json:"tookMs,omitempty"`
	Error     string   `json:"error,omitempty"`
}

func (e turnEndEvent) AppendJSON(b []byte) []byte {
	b = jsonenc.AppendString(append(b, `{"type":"turn_end","agent":`...), e.Agent)
	b = strconv.AppendInt(append(b, `,"turn":`...), e.Turn, 10)
	b = jsonenc.AppendString(append(b, `,"outcome":`...), e.Outcome)
	if e.SessionID != "" {
		b = jsonenc.AppendString(append(b, `,"sessionId":`...), e.SessionID)
	}
	b = appendOptional(b, `,"tokens":`, e.Tokens)
	if e.CostUSD != nil {
		b = strconv.AppendFloat(append(b, `,"costUsd":`...), *e.CostUSD, 'g', -1, 64)
	}
	b = appendOptional(b, `,"steps":`, int64(e.Steps))
	b = appendOptional(b, `,"tookMs":`, e.TookMs)
	if e.Error != "" {
		b = jsonenc.AppendString(append(b, `,"error":`...), e.Error)
	}
	return append(b, '}')
}

// cancelEvent says why an ask got no answer. The null answer itself is the message line before it,
// which is what ends the ask.
type cancelEvent struct {
	Type      string `json:"type"`
	AskID     int64  `json:"askId"`
	Asker     string `json:"asker"`
	Addressee string `json:"addressee"`
	Reason    string `json:"reason"`
}

// The reasons for which asks are cancelled.
const (
	cancelSilent    = "silent"    // reminded, and still no answer
	cancelDeadline  = "deadline"  // its time was up
	cancelGone      = "gone"      // one of the two is out of the session
	cancelConcluded = "concluded" // a terminal call ended the session
	cancelStopped   = "stopped"   // the session was ended by something else
)

func (e cancelEvent) AppendJSON(b []byte) []byte { return encode(b, e) }
func (e cancelEvent) apply(*state)               {}

// reminderEvent says that a participant was reminded of asks; the text is the message of the given
// id.
type reminderEvent struct {
	Type   string  `json:"type"`
	Agent  string  `json:"agent"`
	ID     int64   `json:"id"`
	AskIDs []int64 `json:"askIds"`
}

func (e reminderEvent) AppendJSON(b []byte) []byte { return encode(b, e) }
func (e reminderEvent) apply(*state)               {}

// violationEvent says that a participant left an ask unanswered after the reminder.
type violationEvent struct {
	Type  string `json:"type"`
	Agent string `json:"agent"`
	AskID int64  `json:"askId"`
	Mode  string `json:"mode"`
}

func (e violationEvent) AppendJSON(b []byte) []byte { return encode(b, e) }
func (e violationEvent) apply(*state)               {}

// undeliveredEvent lists messages that will never reach a queue's owner, so that none is lost
// without a word.
type undeliveredEvent struct {
	Type   string  `json:"type"`
	To     string  `json:"to"`
	IDs    []int64 `json:"ids"`
	Reason string  `json:"reason"`
}

func (e undeliveredEvent) AppendJSON(b []byte) []byte { return encode(b, e) }
func (e undeliveredEvent) apply(*state)               {}
