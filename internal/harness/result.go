package harness

// The verdicts of sessions.
const (
	VerdictSuccess   = "success"   // Conclude
	VerdictFailure   = "failure"   // Conclude, or no conclusion
	VerdictAdjourned = "adjourned" // Adjourn
	VerdictFailed    = "failed"    // Adjourn, or no conclusion
	VerdictRecessed  = "recessed"  // Recess
)

// The reasons why sessions end.
const (
	ReasonConcluded   = "concluded"
	ReasonQuiescent   = "quiescent" // nobody had anything to do, and the lead did not conclude
	ReasonMaxTurns    = "max_turns"
	ReasonTimeout     = "timeout"
	ReasonBudget      = "budget" // tokens or dollars
	ReasonError       = "error"
	ReasonAuth        = "auth"
	ReasonProvider    = "provider" // the model provider failed the lead
	ReasonInterrupted = "interrupted"
	// ReasonTrace is a trace that could not be written: the session ended through no fault of its
	// agents, their homes are kept, and Resume can continue it.
	ReasonTrace = "trace"
	// ReasonDisk is a disk that is full, so that an agent failed through no fault of its own. The
	// session can be resumed.
	ReasonDisk = "disk"
)

// Result is how a session ended.
type Result struct {
	Success bool   `json:"success"`
	Verdict string `json:"verdict,omitempty"`
	// Turns are those of the models of all members, and of their advisor.
	Turns   int    `json:"turns"`
	Summary string `json:"summary,omitempty"`
	// Reason distinguishes a conclusion from other ways to end.
	Reason string `json:"reason"`
	// Outcome is what the lead said about a discussion beyond its verdict.
	Outcome string `json:"outcome,omitempty"`
	// CostUSD is nil where some of the cost is not known.
	CostUSD      *float64            `json:"costUsd,omitempty"`
	Tokens       int64               `json:"tokens,omitempty"`
	Participants []ParticipantResult `json:"participants"`

	// Replies went to the thread of a discussion from this run, in order; RFCs are requests to open
	// other threads.
	Replies []Reply `json:"replies,omitempty"`
	RFCs    []RFC   `json:"rfcs,omitempty"`
	// Trigger is what a recessed discussion waits for.
	Trigger *Trigger `json:"trigger,omitempty"`
	// LastActedSeq is the last message of the bridge's inbox that the lead has dealt with; -1 is
	// none.
	LastActedSeq int64 `json:"-"`
	// Resume is what a later session needs to continue a recessed discussion.
	Resume *ResumeContext `json:"resume,omitempty"`
	// Unsent are the seqs of the replies that could not be posted.
	Unsent []int64 `json:"unsentReplies,omitempty"`
}

// ParticipantResult counts what one member consumed.
type ParticipantResult struct {
	Name      string   `json:"name"`
	Turns     int      `json:"turns"` // of its model
	Tokens    int64    `json:"tokens,omitempty"`
	CostUSD   *float64 `json:"costUsd,omitempty"`
	SessionID string   `json:"sessionId,omitempty"`
	Gone      string   `json:"gone,omitempty"` // why it left the session early
	// Abandoned says that its agent did not stop when it was asked to.
	Abandoned bool `json:"abandoned,omitempty"`
}

// The kinds of replies.
const (
	ReplyReply = "reply" // an answer to the lead
	ReplyAck   = "ack"   // posted by Acknowledge
)

// Reply is one post to the discussion thread.
type Reply struct {
	Body  string `json:"body"`
	Agent string `json:"agent"`
	Kind  string `json:"kind,omitempty"`
	// Seq is that of the reply's own line in the trace, and Run the run that wrote it: together
	// they identify a reply among all of a discussion.
	Seq      int64  `json:"seq"`
	Run      string `json:"run,omitempty"`
	ThreadID string `json:"thread_id,omitempty"`
}

// RFC is a request to open a thread for comments.
type RFC struct {
	Addressee     string `json:"addressee,omitempty"`
	Body          string `json:"body"`
	Channel       string `json:"channel"`
	Agent         string `json:"agent,omitempty"`
	ThreadID      string `json:"thread_id,omitempty"`
	CorrelationID string `json:"correlation_id"`
}

// The kinds of triggers.
const (
	TriggerMissingInput     = "missing_input"
	TriggerEscalationNeeded = "escalation_needed"
	TriggerElapsed          = "elapsed"
)

// Trigger is what ends a recess.
type Trigger struct {
	Kind    string `json:"kind"`
	Replies int    `json:"replies,omitempty"` // missing_input: how many messages are awaited
	Signal  string `json:"signal,omitempty"`  // escalation_needed
	Elapsed string `json:"elapsed,omitempty"` // elapsed: an ISO-8601 duration of days, hours, minutes and seconds
}

// summaryEvent is the last line of a session.
type summaryEvent struct {
	Type string `json:"type"`
	Result
	DiscussionID string `json:"discussion_id,omitempty"`
	LastActedSeq *int64 `json:"lastActedSeq,omitempty"` // of a discussion
}

func (e summaryEvent) apply(s *state) { s.summarized = true }
