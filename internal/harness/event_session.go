package harness

// startedEvent is the first line of a session (after meta, in a discussion). It holds what a
// resumed session needs to know.
type startedEvent struct {
	Type    string `json:"type"`
	Mode    Mode   `json:"mode"`
	Format  int    `json:"format"`
	Lead    string `json:"lead"`
	Started int64  `json:"startedMs"`
	// Isolation says what separates the agents from the rest of the machine: bwrap or none, and
	// what it leaves open.
	Isolation string `json:"isolation,omitempty"`
	// Network is what the agents reach: host, model or none.
	Network string `json:"network,omitempty"`
	// ProjectPrograms says that programs of the members' projects, such as hooks, could run.
	ProjectPrograms bool `json:"projectPrograms,omitempty"`
	// Members are the lead and the participants, as they were configured after their profiles were
	// read.
	Members  []AgentConfig `json:"members"`
	Settings settings      `json:"settings"`
	// Task is the task of the session. It is the lead's first message and has the id 0.
	Task string `json:"task"`
	// Resumed are the counters that continue from an earlier session of the same discussion.
	Resumed *ResumeContext `json:"resumed,omitempty"`
}

// metaEvent names the discussion a trace belongs to; it is the trace's first line.
type metaEvent struct {
	Type         string `json:"type"`
	DiscussionID string `json:"discussion_id"`
}

// conversationEvent records the id with which a member's conversation can be resumed.
type conversationEvent struct {
	Type      string `json:"type"`
	Agent     string `json:"agent"`
	SessionID string `json:"sessionId"`
}

// goneEvent says that a participant has left the session: it failed for good or used up its budget.
type goneEvent struct {
	Type   string `json:"type"`
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
}

// refusalEvent says that a terminal call was refused because of what is still open.
type refusalEvent struct {
	Type   string  `json:"type"`
	By     string  `json:"by"`
	Tool   string  `json:"tool"`
	AskIDs []int64 `json:"askIds,omitempty"`
	Unread []int64 `json:"unread,omitempty"` // messages of people that the lead has not seen
	Call   string  `json:"call,omitempty"`
}

// conclusionEvent is an accepted terminal call.
type conclusionEvent struct {
	Type    string   `json:"type"`
	By      string   `json:"by"`
	Tool    string   `json:"tool"`
	Verdict string   `json:"verdict"`
	Summary string   `json:"summary"`
	Outcome string   `json:"outcome,omitempty"`
	Trigger *Trigger `json:"trigger,omitempty"`
	Call    string   `json:"call,omitempty"`
}

// replyEvent is a post to the discussion thread. The text of a reply is that of the message it
// refers to; an acknowledgement has its own.
type replyEvent struct {
	Type    string `json:"type"`
	Kind    string `json:"kind"`
	Agent   string `json:"agent"`
	Message int64  `json:"message,omitempty"`
	Body    string `json:"body,omitempty"`
	Call    string `json:"call,omitempty"`

	seq int64 // of its own line
}

// rfcEvent is a request for comment, kept apart from replies.
type rfcEvent struct {
	Type          string   `json:"type"`
	Agent         string   `json:"agent"`
	CorrelationID string   `json:"correlation_id"`
	Channel       string   `json:"channel"`
	Body          string   `json:"body"`
	Addressees    []string `json:"addressees,omitempty"`
	Call          string   `json:"call,omitempty"`
}

// advisorStartEvent takes one use from the advisor's budget before the advisor is asked, so that a
// crash cannot give it back.
type advisorStartEvent struct {
	Type   string `json:"type"`
	Caller string `json:"caller"`
	Used   int    `json:"used"`
}

// advisorConsultEvent says what became of a consultation.
type advisorConsultEvent struct {
	Type       string `json:"type"`
	Caller     string `json:"caller"`
	Question   string `json:"question"`
	Model      string `json:"model"`
	DurationMs int64  `json:"durationMs"`
	Remaining  int    `json:"remaining"`
	OK         bool   `json:"ok"`
	Reason     string `json:"reason,omitempty"` // why there was no advice
	// Steps, Tokens and CostUSD are what it consumed, which is charged to the caller.
	Steps   int      `json:"steps,omitempty"` // model turns
	Tokens  int64    `json:"tokens,omitempty"`
	CostUSD *float64 `json:"costUsd,omitempty"`
}

func (e advisorConsultEvent) apply(s *state) {
	s.usage.add(0, e.Steps, e.Tokens, e.CostUSD)
	if m := s.members[e.Caller]; m != nil {
		m.usage.add(0, e.Steps, e.Tokens, e.CostUSD)
		m.consulted.add(0, e.Steps, e.Tokens, e.CostUSD)
	}
}

// runnerErrorEvent records a round that failed, and what is done about it.
type runnerErrorEvent struct {
	Type    string `json:"type"`
	Agent   string `json:"agent"`
	Turn    int64  `json:"turn"`
	Attempt int    `json:"attempt"`
	Policy  string `json:"policy"` // retry or fail
	Error   string `json:"error"`
}

func (e runnerErrorEvent) apply(*state) {}

// limitEvent says that a limit of the session or of one member was reached. The old lead_turn_limit
// is one of them.
type limitEvent struct {
	Type  string  `json:"type"`
	Agent string  `json:"agent,omitempty"`
	Name  string  `json:"name,omitempty"` // timeout, idle, turns, model_turns, tokens, cost
	Limit float64 `json:"limit"`
	Flag  string  `json:"flag,omitempty"` // of fit-harness, which sets it
}

func (e limitEvent) apply(*state) {}

// quiescenceEvent says that nobody runs and nothing is queued. Message is the nudge that the lead
// gets; without it the session ends.
type quiescenceEvent struct {
	Type    string `json:"type"`
	Message int64  `json:"message,omitempty"`
}

// resumedEvent says that a process took over the session of another that was killed.
type resumedEvent struct {
	Type        string   `json:"type"`
	Interrupted []string `json:"interrupted,omitempty"` // who was in a round
	OpenAsks    int      `json:"openAsks"`
}

// apply does not rely on the agents' own records of their last rounds: an agent that is killed
// loses what it has not written yet.
func (e resumedEvent) apply(s *state) {
	for _, m := range s.order {
		m.settled = false
	}
}

// interruptedEvent says that the caller has ended the session. A session that is resumed continues
// from here: the lines after it only record how the agents were stopped.
type interruptedEvent struct {
	Type string `json:"type"`
}

func (e interruptedEvent) apply(*state) {}

// noteEvent is a problem that does not end the session.
type noteEvent struct {
	Type  string `json:"type"`
	Agent string `json:"agent,omitempty"`
	Text  string `json:"text"`
}

func (e noteEvent) apply(*state) {}
