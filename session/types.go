package session

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/price"
)

// AgentID names an agent of the registry.
type AgentID string

// Version is the version of the EnrichedSession document. Fields may be added; none is renamed or
// removed.
const Version = 1

// Kind is the kind of an EnrichedEvent.
type Kind string

// The kinds of canonical events.
const (
	KindMessage      Kind = "message"
	KindToolCall     Kind = "tool_call"
	KindToolResult   Kind = "tool_result"
	KindThinking     Kind = "thinking"
	KindSystemPrompt Kind = "system_prompt"
	KindError        Kind = "error"
	KindCost         Kind = "cost"
	KindMilestone    Kind = "milestone"
)

// Where an event's timestamp comes from.
const (
	TsNative  = "native"  // the agent's own clock
	TsArrival = "arrival" // the envelope's ts: when the line reached us
)

// EnrichedEvent is one canonical event.
type EnrichedEvent struct {
	Seq         int    `json:"seq"`
	Kind        Kind   `json:"kind"`
	TimestampMs int64  `json:"timestampMs"`
	TsSource    string `json:"tsSource"`
	ElapsedMs   int64  `json:"elapsedMs"`
	TurnIndex   int    `json:"turnIndex"`
	Role        string `json:"role,omitempty"` // user, assistant, system
	Text        string `json:"text,omitempty"`
	// what a system prompt or a special message is: init, reminder, compaction, final
	Label     string      `json:"label,omitempty"`
	Tool      *ToolCall   `json:"tool,omitempty"`
	Result    *ToolResult `json:"result,omitempty"`
	Usage     *TokenUsage `json:"usage,omitempty"`
	Milestone *Milestone  `json:"milestone,omitempty"`
	Error     *ErrorInfo  `json:"error,omitempty"`
	// Parent is the call id of the tool call that started the sub-agent this event belongs to.
	Parent string `json:"parent,omitempty"`
	// Lane is the source of the envelope the event came in.
	Lane string `json:"lane,omitempty"`
	// MessageID is the model's own id of the message, where the stream has one.
	MessageID string `json:"messageId,omitempty"`
	RawLine   int64  `json:"rawLine"`
}

// ToolCall is one use of a tool.
type ToolCall struct {
	CallID     string `json:"callId"`
	NativeName string `json:"nativeName"`
	// read, write, edit, search, list, bash, web, task, plan, other
	Canonical string `json:"canonical"`
	// read, search, list, test, build: what a shell command really was
	Derived string          `json:"derived,omitempty"`
	Args    json.RawMessage `json:"args"`
	Paths   []string        `json:"paths,omitempty"`
	Command string          `json:"command,omitempty"`
}

// Effective returns the tool that the call counts as when agents are compared: the derived one,
// else the canonical one.
func (c *ToolCall) Effective() string {
	return cmp.Or(c.Derived, c.Canonical)
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	CallID   string `json:"callId"`
	IsError  bool   `json:"isError"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Bytes    int    `json:"bytes"`
	Preview  string `json:"preview,omitempty"`
	// Content is the whole result as text; it is not part of the stored document, which keeps the
	// preview.
	Content string `json:"-"`
}

// ErrorKind distinguishes what went wrong.
type ErrorKind string

// The kinds of error events.
const (
	ErrorRetry           ErrorKind = "retry"            // a model call failed and is tried again
	ErrorRateLimit       ErrorKind = "rate_limit"       // 429, given up
	ErrorOverloaded      ErrorKind = "overloaded"       // 529 and other 5xx, given up
	ErrorAuth            ErrorKind = "auth"             // bad or missing credentials
	ErrorRefusal         ErrorKind = "refusal"          // the model declined
	ErrorContextOverflow ErrorKind = "context_overflow" // the conversation no longer fits
	ErrorMaxTurns        ErrorKind = "max_turns"
	ErrorBudget          ErrorKind = "budget"
	ErrorAborted         ErrorKind = "aborted"
	ErrorAPI             ErrorKind = "api"     // any other failure of the model's service
	ErrorWarning         ErrorKind = "warning" // said by the agent, which continued
	ErrorOther           ErrorKind = "other"
)

// ErrorInfo is the content of an error event.
type ErrorInfo struct {
	Kind    ErrorKind `json:"kind"`
	Status  int       `json:"status,omitempty"` // the HTTP status, where there was one
	Attempt int       `json:"attempt,omitempty"`
	Message string    `json:"message,omitempty"`
}

// TokenUsage counts the tokens that were consumed, and what they cost. The price table prices it,
// and is therefore where it is declared.
type TokenUsage = price.TokenUsage

// Where a cost comes from.
const (
	CostReported  = price.CostReported  // the agent's own figure
	CostComputed  = price.CostComputed  // tokens times the price table
	CostEstimated = price.CostEstimated // of provisional counts of tokens
	CostWire      = price.CostWire      // of the tokens that the gateway saw
	CostUnknown   = price.CostUnknown
)

// Milestone marks the first time something happened.
type Milestone struct {
	Kind        string `json:"kind"`
	TimestampMs int64  `json:"timestampMs"`
	TurnIndex   int    `json:"turnIndex"`
	ElapsedMs   int64  `json:"elapsedMs"`
}

// The nine milestones.
const (
	FirstFileRead      = "first_file_read"
	FirstFileEdit      = "first_file_edit"
	FirstTestRun       = "first_test_run"
	FirstBashCommand   = "first_bash_command"
	FirstSearch        = "first_search"
	FirstErrorRecovery = "first_error_recovery"
	TaskCompletion     = "task_completion"
	VerificationPass   = "verification_pass"
	VerificationFail   = "verification_fail"
)

// SystemPromptInjection is one piece of text that reached the model beside the conversation.
type SystemPromptInjection struct {
	Source    string `json:"source"`
	Content   string `json:"content"`
	Label     string `json:"label"`
	TurnIndex int    `json:"turnIndex"`
}

// Message is one thing said.
type Message struct {
	Role        string `json:"role"`
	Text        string `json:"text"`
	TimestampMs int64  `json:"timestampMs"`
	TurnIndex   int    `json:"turnIndex"`
}

// Process is how an agent's process was started, as agent_end says it.
type Process struct {
	Argv         []string `json:"argv"`
	Binary       string   `json:"binary,omitempty"`
	BinarySHA256 string   `json:"binarySha256,omitempty"`
	Auth         string   `json:"auth,omitempty"` // the kind of credentials: apikey, subscription
	StartMs      int64    `json:"startMs,omitempty"`
	EndMs        int64    `json:"endMs,omitempty"`
	TimedOut     bool     `json:"timedOut,omitempty"`
	Signal       string   `json:"signal,omitempty"`
}

// DiffStat is the size of a change.
type DiffStat struct {
	Files      int `json:"files"`
	Insertions int `json:"insertions"`
	Deletions  int `json:"deletions"`
	// Generated counts files that a tool made, such as caches. They count in nothing else.
	Generated int `json:"generated,omitempty"`
}

// VerifyResult is the outcome of the harness's own check, never the agent's claim.
type VerifyResult struct {
	Passed   bool  `json:"passed"`
	ExitCode int   `json:"exitCode"`
	EndMs    int64 `json:"endMs"`
}

// IntegrityFlag marks something suspicious in a run, and where it is: an event of the trace, a line
// of the diff, or both.
type IntegrityFlag struct {
	Kind string `json:"kind"`
	// Evidence is the text there.
	Evidence string   `json:"evidence"`
	Severity Severity `json:"severity"`
	// File and Line are a place in the diff. A negative line was removed: its number is that of the
	// old file.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Seq and RawLine are an event and its line of the trace.
	Seq     int   `json:"seq,omitempty"`
	RawLine int64 `json:"rawLine,omitempty"`
	// Suspected says that a model raised the flag: people look at it, and it decides nothing.
	Suspected bool `json:"suspected,omitempty"`
	// Cleared says that a person has looked at the flag: it is not cheating, and decides nothing.
	Cleared *Clearance `json:"cleared,omitempty"`
}

// Clearance says who cleared a flag, why and when.
type Clearance struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	AtMs   int64  `json:"atMs"`
}

// Disqualifies reports whether the flag alone disqualifies an attempt.
func (f *IntegrityFlag) Disqualifies() bool {
	return f.Severity == SeverityCritical && !f.Suspected && f.Cleared == nil
}

// Address returns where the flag points: file:12, file:-11 for a removed line, or trace:34.
func (f *IntegrityFlag) Address() string {
	switch {
	case f.File != "" && f.Line != 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	case f.File != "":
		return f.File
	}
	return fmt.Sprintf("trace:%d", f.RawLine)
}

// Severity is how much a flag weighs.
type Severity string

// The severities of flags. A critical one disqualifies the run until a person has looked at it.
const (
	SeverityMedium   Severity = "medium"
	SeverityHigh     Severity = "high"
	SeverityCritical Severity = "critical"
)

// Outcome is how the agent itself ended, read from its final event.
type Outcome string

// The outcomes of a run. An empty outcome means that no final event was seen.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeError     Outcome = "error"
	OutcomeMaxTurns  Outcome = "max_turns"
	OutcomeBudget    Outcome = "budget"
	OutcomeAborted   Outcome = "aborted"
	OutcomeNoResult  Outcome = "no_result"
	OutcomeTimeout   Outcome = "timeout"
	OutcomeOutput    Outcome = "output_limit"
	OutcomeAuth      Outcome = "auth"
	OutcomeProvider  Outcome = "provider" // the model provider failed, after all retries
	OutcomeCancelled Outcome = "interrupted"
)

// EnrichedSession is the complete enriched transcript of one agent's run.
type EnrichedSession struct {
	Version       int                     `json:"version"`
	SessionID     string                  `json:"sessionId"`
	RunID         string                  `json:"runId"`
	TaskID        string                  `json:"taskId"`
	Agent         AgentID                 `json:"agent"`
	AgentVersion  string                  `json:"agentVersion,omitempty"`
	Dialect       string                  `json:"dialect,omitempty"`
	Model         string                  `json:"model,omitempty"`
	Cwd           string                  `json:"cwd,omitempty"`
	Lane          string                  `json:"lane,omitempty"` // of the trace
	RunIndex      int                     `json:"runIndex"`
	Messages      []Message               `json:"messages"`
	Milestones    []Milestone             `json:"milestones"`
	SystemPrompts []SystemPromptInjection `json:"systemPrompts"`
	Usage         TokenUsage              `json:"usage"`
	ModelUsage    map[string]TokenUsage   `json:"modelUsage,omitempty"`
	Events        []EnrichedEvent         `json:"events"`
	StartMs       int64                   `json:"startMs"`
	WallClockMs   int64                   `json:"wallClockMs"`
	Turns         int                     `json:"turns"`
	Outcome       Outcome                 `json:"outcome"`
	FinalText     string                  `json:"finalText,omitempty"`
	ExitCode      int                     `json:"exitCode"`
	// ModelCalls are the calls of the model that the gateway saw.
	ModelCalls []ModelCall `json:"modelCalls,omitempty"`
	// ReportedUsage is the agent's own report, if Usage comes from the gateway.
	ReportedUsage *TokenUsage `json:"reportedUsage,omitempty"`
	// OriginalCostUSD is what the calls that were answered from a record cost when they were
	// recorded.
	OriginalCostUSD *float64 `json:"originalCostUsd,omitempty"`
	// Process is how the agent's process was started, where the harness wrote it down.
	Process      *Process        `json:"process,omitempty"`
	TaskResolved *bool           `json:"taskResolved"`
	Diff         DiffStat        `json:"diff"`
	Verify       *VerifyResult   `json:"verify,omitempty"`
	ParseErrors  int             `json:"parseErrors"`
	Unknown      int             `json:"unknownEvents"`
	Skipped      int             `json:"skippedLines"`
	Dropped      int             `json:"droppedDeltas"`
	Integrity    []IntegrityFlag `json:"integrity"`
	// Origin is the document that the session was imported from, where that document says more than
	// the session can hold.
	Origin json.RawMessage `json:"origin,omitempty"`
}
