package bridge

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/fit-eval/fit/internal/harness"
)

// The kinds of callbacks.
const (
	KindReply    = harness.ReplyReply
	KindAck      = harness.ReplyAck
	KindTerminal = "terminal"
)

const (
	// MaxBody is how much of a callback a bridge reads.
	MaxBody = 8 << 20
	// MaxPage is how much of an inbox a run reads at a time.
	MaxPage = 64 << 20
	// LongPoll is how long a bridge holds a request for messages open when there are none.
	LongPoll = 30 * time.Second
)

// Callback is a message from a session to its bridge. A reply or ack sets only the first five
// fields, a terminal callback all but Seq, Body and Agent.
type Callback struct {
	CorrelationID string `json:"correlation_id"`
	Kind          string `json:"kind"`
	Seq           *int64 `json:"seq,omitempty"`
	Body          string `json:"body,omitempty"`
	Agent         string `json:"agent,omitempty"`
	*Terminal
}

// Terminal is how a session ended.
type Terminal struct {
	Verdict string `json:"verdict"`
	Summary string `json:"summary"`
	RunURL  string `json:"run_url"`
	// CostUSD is 0 where it is not known.
	CostUSD float64         `json:"cost_usd"`
	Replies []harness.Reply `json:"replies"`
	// LastActedSeq is the last inbox message that the lead has dealt with; what came after it is
	// still to be done.
	LastActedSeq int64            `json:"last_acted_seq"`
	DiscussionID string           `json:"discussion_id,omitempty"`
	Outcome      string           `json:"outcome,omitempty"`
	RFCs         []harness.RFC    `json:"rfcs,omitempty"`
	Trigger      *harness.Trigger `json:"trigger,omitempty"`
	// Resume is for the next session of the discussion; a bridge adds what people wrote meanwhile
	// and hands it back as --resume-context.
	Resume *harness.ResumeContext `json:"resume,omitempty"`
}

// replyCallback makes the callback of one reply.
func replyCallback(correlationID string, r harness.Reply) Callback {
	seq := r.Seq
	return Callback{
		CorrelationID: correlationID,
		Kind:          r.Kind,
		Seq:           &seq,
		Body:          r.Body,
		Agent:         r.Agent,
	}
}

// InboxPage is a bridge's response to a request for messages.
type InboxPage struct {
	Messages []InboxMessage `json:"messages"`
}

// InboxMessage is a message that a person wrote in the thread while a session was running.
type InboxMessage struct {
	CorrelationID string    `json:"correlation_id,omitempty"`
	Seq           int64     `json:"seq"`
	Text          string    `json:"text"`
	Author        string    `json:"author,omitempty"`
	EnqueuedAt    Timestamp `json:"enqueued_at,omitzero"`
}

// Timestamp is written as epoch milliseconds and read in any form, because nothing here uses it.
type Timestamp int64

// UnmarshalJSON never fails.
func (t *Timestamp) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*int64)(t)) != nil {
		*t = 0
	}
	return nil
}

// transient reports whether a request with this status is worth retrying.
func transient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return status >= 500
	}
}
