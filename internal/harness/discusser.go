package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/redact"
)

// DiscusserConfig is a discussion: a lead, participants, and people who follow in a thread.
type DiscusserConfig struct {
	LeadCwd     string
	LeadProfile string
	// Lead has further settings of the lead; its name and role are given by the mode.
	Lead         AgentConfig
	AgentConfigs []AgentConfig // may be empty
	NewAgent     AgentFunc
	Output       io.Writer
	Redactor     *redact.Redactor // nil is the one the environment asks for
	Options      Options

	// DiscussionID names the thread; it is the first line of the trace.
	DiscussionID string
	// Replies posts to the thread; nil keeps replies in the result only.
	Replies ReplySender
	// Inbox brings what people write meanwhile; nil brings nothing.
	Inbox Inbox
	// Resume continues an earlier session of the same discussion.
	Resume *ResumeContext
}

// NewDiscusser checks the config and reads the profiles.
func NewDiscusser(cfg DiscusserConfig) (*Session, error) {
	return newSession(sessionConfig{
		mode:         ModeDiscuss,
		lead:         leadConfig(ModeDiscuss, cfg.Lead, cfg.LeadCwd, cfg.LeadProfile),
		participants: cfg.AgentConfigs,
		newAgent:     cfg.NewAgent,
		output:       cfg.Output,
		redactor:     cfg.Redactor,
		options:      cfg.Options,
		discuss: &discussConfig{
			id:     cfg.DiscussionID,
			sender: cfg.Replies,
			inbox:  cfg.Inbox,
			resume: cfg.Resume,
		},
	})
}

// HumanMessage is something that a person wrote in the thread.
type HumanMessage struct {
	Seq    int64  // of the bridge's inbox, increasing
	Author string `json:"author"`
	Text   string `json:"text"`
}

// Inbox brings the messages of people into a running discussion. Receive waits until there are
// messages after the given seq, or the context ends; it may also return none, to be called again.
// It retries transient failures itself.
type Inbox interface {
	Receive(ctx context.Context, after int64) ([]HumanMessage, error)
}

// inboxPause is the time between an inbox that failed and the next try.
const inboxPause = 5 * time.Second

// receive puts what people write on the bus until the session stops.
func (l *loop) receive() {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	go func() {
		<-l.stopped
		cancel()
	}()
	for {
		l.hub.mu.Lock()
		after := l.hub.state.lastInbox
		l.hub.mu.Unlock()
		messages, err := l.cfg.discuss.inbox.Receive(ctx, after)
		// even if the session ended while the failure was held back
		if err != nil && !errors.Is(err, context.Canceled) {
			l.note(noteEvent{Type: typeInboxError, Text: l.hub.clean(err.Error())})
			within(l.stopped, inboxPause)
		}
		if ctx.Err() != nil {
			return
		}
		l.hub.inject(messages)
	}
}

func (l *loop) note(e noteEvent) {
	l.hub.mu.Lock()
	l.hub.commit(e)
	l.hub.mu.Unlock()
	_ = l.hub.flush() // a broken trace is reported where it matters
}

// inject gives messages of people to the lead, in the order in which they were written. Messages
// after the end, and repeated ones, are left to the bridge.
func (h *hub) inject(messages []HumanMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	messages = slices.Clone(messages)
	slices.SortStableFunc(messages, func(a, b HumanMessage) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, m := range messages {
		if h.stopped || m.Seq <= h.state.lastInbox {
			continue
		}
		h.post(&Message{
			Kind:     KindHuman,
			From:     authorName(h.clean(m.Author)),
			To:       h.state.lead.name,
			Text:     h.bounded(h.clean(m.Text)),
			InboxSeq: m.Seq,
		})
	}
}

// bounded cuts a text whose author cannot shorten it, and says how much is missing.
func (h *hub) bounded(text string) string {
	limit := h.state.settings.MaxMessageBytes
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s… [the message has %d bytes; the rest is in the thread]",
		strings.ToValidUTF8(text[:limit], ""), len(text))
}

// ResumeContext carries the state of a discussion from one session to the next. A bridge keeps it
// and adds what people wrote during the recess.
type ResumeContext struct {
	CorrelationID string `json:"correlation_id,omitempty"`
	// HistorySince is what was said in the thread since the recess.
	HistorySince []HistoryEntry `json:"history_since,omitempty"`
	Participants []string       `json:"participants,omitempty"`
	Replies      []Reply        `json:"replies,omitempty"`
	AskIDCounter int64          `json:"askIdCounter,omitempty"`
	RFCCounter   int64          `json:"rfcCounter,omitempty"`
	// Reason and Trigger are what the lead said when it suspended the discussion, and Pending the
	// questions that were open then.
	Reason  string       `json:"reason,omitempty"`
	Trigger *Trigger     `json:"trigger,omitempty"`
	Pending []PendingAsk `json:"pending,omitempty"`
	// Sessions are the ids of the agents' conversations by member. They are kept below
	// Options.HomeDir, which must be the same in both sessions.
	Sessions map[string]string `json:"sessions,omitempty"`
}

// PendingAsk is a question that was cancelled because the session ended.
type PendingAsk struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Question string `json:"question"`
}

// HistoryEntry is one message of the thread.
type HistoryEntry struct {
	Role   string `json:"role"` // user for people
	Text   string `json:"text"`
	Author string `json:"author,omitempty"`
}

// ParseResumeContext reads a resume context. An empty text has none.
func ParseResumeContext(text string) (*ResumeContext, error) {
	if text == "" {
		return nil, nil
	}
	var r ResumeContext
	err := json.Unmarshal([]byte(text), &r)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return nil, fmt.Errorf("resume context: %q must not be a JSON %s", wrongType.Field, wrongType.Value)
	case wrongType != nil:
		return nil, fmt.Errorf("resume context: it must be a JSON object, not a JSON %s", wrongType.Value)
	case err != nil:
		return nil, fmt.Errorf("resume context: it is not JSON: %w", err)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return &r, nil
}

// check refuses counters that no discussion has.
func (r *ResumeContext) check() error {
	if r != nil && (r.AskIDCounter < 0 || r.RFCCounter < 0 || r.AskIDCounter > maxResumedAsks) {
		return fmt.Errorf("resume context: the counters make no sense: askIdCounter %d, rfcCounter %d",
			r.AskIDCounter, r.RFCCounter)
	}
	return nil
}

// maxResumedAsks bounds what a forged counter can make us allocate.
const maxResumedAsks = 1 << 20

// cleaned returns a redacted copy for the trace and the bus.
func (r *ResumeContext) cleaned(clean func(string) string) *ResumeContext {
	if r == nil {
		return nil
	}
	c := *r
	c.HistorySince, c.Replies, c.Pending = nil, nil, nil
	c.Reason = clean(r.Reason)
	for _, p := range r.Pending {
		c.Pending = append(c.Pending, PendingAsk{
			From: authorName(clean(p.From)), To: authorName(clean(p.To)),
			Question: clean(p.Question),
		})
	}
	for _, entry := range r.HistorySince {
		entry.Text, entry.Author = clean(entry.Text), clean(entry.Author)
		c.HistorySince = append(c.HistorySince, entry)
	}
	for _, reply := range r.Replies {
		reply.Body = clean(reply.Body)
		c.Replies = append(c.Replies, reply)
	}
	c.Sessions = maps.Clone(r.Sessions)
	return &c
}

// injectHistory informs the lead of the state of the discussion and of what was said during the
// recess. The lock must be held.
func (h *hub) injectHistory(r *ResumeContext) {
	if r == nil {
		return
	}
	if text := r.describe(r.Sessions[h.state.lead.name] != ""); text != "" {
		h.post(&Message{
			Kind: KindSynthetic,
			From: OrchestratorName,
			To:   h.state.lead.name,
			Text: text,
		})
	}
	for _, entry := range r.HistorySince {
		if entry.Text != "" {
			h.post(&Message{
				Kind: KindHuman,
				From: authorName(cmp.Or(entry.Author, entry.Role)),
				To:   h.state.lead.name,
				Text: h.bounded(entry.Text),
			})
		}
	}
}

// resumeContext returns what the next session of this discussion needs to know.
func (s *state) resumeContext() *ResumeContext {
	r := &ResumeContext{
		Pending:      s.openAtEnd,
		Replies:      s.replies,
		AskIDCounter: s.lastAsk,
		RFCCounter:   s.lastRFC,
		Sessions:     map[string]string{},
	}
	if c := s.conclusion; c != nil && c.Verdict == VerdictRecessed {
		r.Reason, r.Trigger = c.Summary, c.Trigger
	}
	for _, m := range s.order {
		if m != s.lead {
			r.Participants = append(r.Participants, m.name)
		}
		if m.sessionID != "" {
			r.Sessions[m.name] = m.sessionID
		}
	}
	return r
}
