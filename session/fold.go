package session

import (
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
)

// Options says how a Fold builds a session.
type Options struct {
	// Prices computes the cost of what an agent does not price itself; nil leaves such costs
	// unknown.
	Prices Prices
	// OnEvent, if set, sees every canonical event as it is made, and may keep it.
	OnEvent func(*EnrichedEvent)
	// Borrower, which only this module has, lends OnEvent its events for the duration of the call.
	Borrower *jsontape.Borrower
	// Flat keeps only totals, milestones and the last message, so that a stream of any length is
	// read in constant memory.
	Flat bool
	// VerifyCommand counts as a test run beside the well-known test commands.
	VerifyCommand string
	// StartMs is when the process started; 0 means the time of the first event.
	StartMs int64
	// Verify is the harness's own check, where there was one.
	Verify *VerifyResult
}

// Origin says where a native event comes from, if its decoder knows. Decoders embed the Stamp that
// they were given.
type Origin struct {
	Stamp
	NativeMs  int64  // the agent's own time in epoch milliseconds; 0 if the event carries none
	Parent    string // the call id that started the sub-agent the event belongs to
	MessageID string // the model's id of the message; events that share one belong to one turn
}

// Identity is what a stream says about itself. Empty fields leave known values unchanged.
type Identity struct {
	Agent     AgentID // where a dialect is spoken by several
	SessionID string
	Version   string
	Model     string
	Cwd       string
}

// ToolUse is a tool call as a decoder reports it.
type ToolUse struct {
	ID   string
	Name string // the agent's own name of the tool
	// Canonical overrides what the name would be mapped to, for tools whose name does not say.
	Canonical string
	Args      []byte   // JSON; nil is written as {}
	Command   string   // the shell command, if it is one; found in Args if empty
	Paths     []string // the files it is about; found in Args if empty
}

// Returned is the result of a tool call as a decoder reports it.
type Returned struct {
	CallID   string
	IsError  bool
	ExitCode *int
	Content  string
}

// Final is the agent's report of the end of a prompt. A stream of several prompts has several; the
// last one is the session's.
type Final struct {
	Outcome Outcome
	Text    string // the answer, or what went wrong
}

// Fold builds a canonical session from what a Decoder reports. Strings handed to it may be views of
// a buffer that is reused: it copies what it keeps. It is not safe for concurrent use.
type Fold struct {
	opts    Options
	session EnrichedSession

	args     jsontape.Parser
	shell    refiner
	tool     ToolCall      // the call that is being reported
	paths    []string      // its files
	event    EnrichedEvent // the one that is being passed on
	result   ToolResult    // what it is about, if that is a result
	seq      int
	lastMs   int64
	turns    turnCounter
	watched  bool // the events are seen or kept
	calls    openCalls
	tasks    map[string]int // the turns of the calls that started sub-agents
	failures []failure
	reached  [milestoneKinds]bool
	usage    usageBook
	wire     wireBook
	outcome  Outcome // of the last final event, if ended
	ending   []byte  // what it said
	ended    bool
	finals   int
	awaited  bool // what the model had to answer before the last final event
	last     lastMessage
	exit     *int
	timedOut bool
	done     bool
}

// lastMessage is the agent's own last message.
type lastMessage struct {
	text []byte
	at   int64
	turn int
	set  bool
}

// maxLastWords is the size above which the memory of a message is not kept.
const maxLastWords = 1 << 20

func (l *lastMessage) say(text string, at position) {
	l.text, l.at, l.turn, l.set = keptText(l.text, text), at.ms, at.turn, true
}

// keptText copies a text into the memory of the one before.
func keptText(memory []byte, text string) []byte {
	if cap(memory) > maxLastWords {
		memory = nil
	}
	return append(memory[:0], text...)
}

// NewFold returns an empty Fold.
func NewFold(opts Options) *Fold {
	return &Fold{
		opts: opts,
		session: EnrichedSession{
			Version:       Version,
			Messages:      []Message{},
			Milestones:    []Milestone{},
			SystemPrompts: []SystemPromptInjection{},
			Events:        []EnrichedEvent{},
			Integrity:     []IntegrityFlag{},
			StartMs:       opts.StartMs,
		},
		watched: opts.OnEvent != nil || !opts.Flat,
		tasks:   map[string]int{},
		usage:   newUsageBook(opts.Prices),
	}
}

// Identify records what the stream says about itself.
func (f *Fold) Identify(id Identity) {
	set := func(field *string, value string) {
		if value != "" && *field != value {
			*field = strings.Clone(value)
		}
	}
	set((*string)(&f.session.Agent), string(id.Agent))
	set(&f.session.SessionID, id.SessionID)
	set(&f.session.AgentVersion, id.Version)
	set(&f.session.Model, id.Model)
	set(&f.session.Cwd, id.Cwd)
}

// Identity returns what the stream has said about itself so far.
func (f *Fold) Identity() Identity {
	return Identity{
		Agent:     f.session.Agent,
		SessionID: f.session.SessionID,
		Version:   f.session.AgentVersion,
		Model:     f.session.Model,
		Cwd:       f.session.Cwd,
	}
}

// Message records something said by "user", "assistant" or "system". The label marks special
// messages: compaction, reminder, interrupted.
func (f *Fold) Message(o Origin, role, text, label string) {
	f.turns.note(role == "assistant", o)
	at := f.position(o)
	if f.watched {
		f.emit(o, at, EnrichedEvent{
			Kind:  KindMessage,
			Role:  role,
			Text:  text,
			Label: label,
		})
	}
	if role == "assistant" && o.Parent == "" {
		f.last.say(text, at)
	}
	if !f.opts.Flat && o.Parent == "" {
		kept := f.session.Events[len(f.session.Events)-1]
		f.session.Messages = append(f.session.Messages, Message{
			Role:        kept.Role,
			Text:        kept.Text,
			TimestampMs: at.ms,
			TurnIndex:   at.turn,
		})
	}
}

// Thinking records the model's reasoning, if the stream shows it.
func (f *Fold) Thinking(o Origin, text string) {
	f.turns.note(true, o)
	at := f.position(o)
	if f.watched {
		f.emit(o, at, EnrichedEvent{Kind: KindThinking, Role: "assistant", Text: text})
	}
}

// SystemPrompt records text that reached the model beside the conversation.
func (f *Fold) SystemPrompt(o Origin, source, label, content string) {
	at := f.position(o)
	if f.watched {
		f.emit(o, at, EnrichedEvent{
			Kind:  KindSystemPrompt,
			Role:  "system",
			Text:  content,
			Label: label,
		})
	}
	if !f.opts.Flat {
		kept := f.session.Events[len(f.session.Events)-1]
		f.session.SystemPrompts = append(f.session.SystemPrompts,
			SystemPromptInjection{
				Source:    strings.Clone(source),
				Content:   kept.Text,
				Label:     kept.Label,
				TurnIndex: at.turn,
			})
	}
}

// Error records that something went wrong, or was tried again.
func (f *Fold) Error(o Origin, info ErrorInfo) {
	at := f.position(o)
	if f.watched {
		own := info
		own.Message = strings.Clone(info.Message)
		f.emit(o, at, EnrichedEvent{Kind: KindError, Text: own.Message, Error: &own})
	}
}

// Turn begins a new turn of the model, for streams that say so themselves. Other streams need not
// call it: an event of the model after a result or a user's message, or with another message id,
// begins a turn.
func (f *Fold) Turn() { f.turns.begin() }

// Turns returns the number of turns so far, without sub-agents.
func (f *Fold) Turns() int { return f.turns.index }

// Final records the agent's final event of a prompt.
func (f *Fold) Final(_ Origin, final Final) {
	f.ending = keptText(f.ending, final.Text)
	f.outcome, f.ended = final.Outcome, true
	f.finals++
	f.awaited, f.turns.afterResult = f.turns.afterResult, true
}

// Reopen takes the last final event back: the agent has said that it continues after all, because
// it tries again, for example.
func (f *Fold) Reopen() {
	if f.ended {
		f.ended = false
		f.finals--
		f.turns.afterResult = f.awaited
	}
}

// Finals returns the last final event, nil if there was none or it was taken back, and how many
// there were.
func (f *Fold) Finals() (*Final, int) {
	if !f.ended {
		return nil, f.finals
	}
	return &Final{Outcome: f.outcome, Text: string(f.ending)}, f.finals
}

// LastText returns the last message of the agent itself.
func (f *Fold) LastText() string { return string(f.last.text) }

// OpenCalls returns the number of tool calls that have no result yet.
func (f *Fold) OpenCalls() int { return f.calls.len() }

// Watched reports whether the events are seen or kept. If not, a decoder may skip what only events
// show: the texts of results and the arguments of calls.
func (f *Fold) Watched() bool { return f.watched }

// AwaitsModel reports whether the model has not yet answered the last result or message.
func (f *Fold) AwaitsModel() bool { return f.turns.index > 0 && f.turns.afterResult }

// Unknown counts an event of a type that the decoder does not know.
func (f *Fold) Unknown() { f.session.Unknown++ }

// ParseError counts an event that is broken.
func (f *Fold) ParseError() { f.session.ParseErrors++ }

// Skipped counts a line that was too long to be read.
func (f *Fold) Skipped() { f.session.Skipped++ }

// Dropped counts deltas that were left out because later events repeat them.
func (f *Fold) Dropped(n int) { f.session.Dropped += n }

// Exited records how the process ended. Sessions read from files have none.
func (f *Fold) Exited(code int, timedOut bool) { f.exit, f.timedOut = &code, timedOut }

// Started records how the process was started and when it ran.
func (f *Fold) Started(p Process) { f.session.Process = &p }

// Verified records the harness's own check; the first one decides the milestone. Its time is not
// the agent's.
func (f *Fold) Verified(result VerifyResult) {
	defer func(agents int64) { f.lastMs = agents }(f.lastMs)
	f.session.Verify = &result
	kind := verificationFail
	if result.Passed {
		kind = verificationPass
	}
	if !f.reached[verificationPass] && !f.reached[verificationFail] {
		f.milestone(Origin{NativeMs: result.EndMs}, kind)
	}
}

// Session closes the fold and returns what it has built. Further reports are not allowed; further
// calls return the same session.
func (f *Fold) Session() *EnrichedSession {
	if f.done {
		return &f.session
	}
	f.done = true
	s := &f.session
	if f.exit != nil {
		s.ExitCode = *f.exit
	}
	f.complete()
	if f.opts.Verify != nil {
		f.Verified(*f.opts.Verify)
	}
	s.Turns = f.turns.index
	f.settleUsage()
	s.WallClockMs = max(0, f.lastMs-s.StartMs)
	if p := s.Process; p != nil && p.EndMs > p.StartMs && p.StartMs > 0 {
		s.WallClockMs = p.EndMs - p.StartMs
	}
	s.FinalText = string(f.last.text)
	if f.ended {
		s.Outcome = f.outcome
		if len(f.ending) > 0 {
			s.FinalText = string(f.ending)
		}
	}
	if f.timedOut {
		s.Outcome = OutcomeTimeout
	}
	return s
}

// complete marks the end of the task: the agent's last message, if the run ended well.
func (f *Fold) complete() {
	cleanExit := f.exit == nil || *f.exit == 0
	good := f.ended && f.outcome == OutcomeSuccess
	if f.last.set && good && cleanExit && !f.timedOut {
		turn := f.turns.index
		f.turns.index = f.last.turn
		f.milestone(Origin{NativeMs: f.last.at}, taskCompletion)
		f.turns.index = turn
	}
}
