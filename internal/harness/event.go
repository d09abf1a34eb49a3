package harness

import "github.com/fit-eval/fit/internal/jsonenc"

// event is one change of a session's state. Live code commits it, which stages its line and applies
// it; replay decodes the line and applies it. Both use apply, so that the state rebuilt from a
// trace equals the original.
type event interface{ apply(s *state) }

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
	typeInterrupted  = "interrupted"
	typeInboxError   = "inbox_error"
	typeWarning      = "warning"
	typeToolCall     = "tool_call"
)

// encode writes the line of an event.
func encode(e event) []byte {
	line, err := jsonenc.Marshal(e)
	if err != nil { // only plain structs come here
		panic("harness: encode event: " + err.Error())
	}
	return line
}

// messageEvent puts a message on the bus. It also opens and closes asks: an ask exists from the
// line of its message on, and ends with the line of its answer.
type messageEvent struct {
	Type string `json:"type"`
	*Message
}

// turnStartEvent says that a participant is about to be prompted.
type turnStartEvent struct {
	Type  string `json:"type"`
	Agent string `json:"agent"`
	Turn  int64  `json:"turn"`
}

// deliveryEvent says which messages a participant gets in a round. It is on disk before the
// participant gets them.
type deliveryEvent struct {
	Type string  `json:"type"`
	To   string  `json:"to"`
	Turn int64   `json:"turn"`
	IDs  []int64 `json:"ids"`
	// Redelivery marks messages that the participant may have seen before: after a failed round, or
	// after a crash.
	Redelivery bool `json:"redelivery,omitempty"`

	batch []*Message // of a live delivery, already taken from the bus
}

// turnEndEvent says how a round ended and what it consumed.
type turnEndEvent struct {
	Type      string   `json:"type"`
	Agent     string   `json:"agent"`
	Turn      int64    `json:"turn"`
	Outcome   string   `json:"outcome"`
	SessionID string   `json:"sessionId,omitempty"`
	Tokens    int64    `json:"tokens,omitempty"`
	CostUSD   *float64 `json:"costUsd,omitempty"`
	Steps     int      `json:"steps,omitempty"` // model turns inside this round
	TookMs    int64    `json:"tookMs,omitempty"`
	Error     string   `json:"error,omitempty"`
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
	cancelGone      = "gone"      // one of the two has left the session
	cancelConcluded = "concluded" // a terminal call ended the session
	cancelStopped   = "stopped"   // the session was ended by something else
)

func (e cancelEvent) apply(*state) {}

// reminderEvent says that a participant was reminded of asks; the text is the message of the given
// id.
type reminderEvent struct {
	Type   string  `json:"type"`
	Agent  string  `json:"agent"`
	ID     int64   `json:"id"`
	AskIDs []int64 `json:"askIds"`
}

func (e reminderEvent) apply(*state) {}

// violationEvent says that a participant left an ask unanswered after the reminder.
type violationEvent struct {
	Type  string `json:"type"`
	Agent string `json:"agent"`
	AskID int64  `json:"askId"`
	Mode  string `json:"mode"`
}

func (e violationEvent) apply(*state) {}

// undeliveredEvent lists messages that will never reach a queue's owner, so that none is lost
// silently.
type undeliveredEvent struct {
	Type   string  `json:"type"`
	To     string  `json:"to"`
	IDs    []int64 `json:"ids"`
	Reason string  `json:"reason"`
}

func (e undeliveredEvent) apply(*state) {}

// toolCallEvent is a tool call that changed nothing, so that every call has a line.
type toolCallEvent struct {
	Type  string `json:"type"`
	Agent string `json:"agent"`
	Tool  string `json:"tool"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"` // the caller's error message
}

func (e toolCallEvent) apply(*state) {}
