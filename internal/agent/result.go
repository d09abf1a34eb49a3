package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/session"
)

// Result is how one prompt ended.
type Result struct {
	// Success requires a final event that reports success, and evidence of model work.
	Success bool
	Outcome session.Outcome
	Text    string // the agent's final answer
	// SessionID is the id with which the conversation can be resumed.
	SessionID string
	// Err says what went wrong, for the user; nil on success and if the outcome says it all. A
	// failure after a successful final event leaves Success true.
	Err     error
	Aborted bool // our own cancellation ended it
	Turns   int
	Usage   session.TokenUsage // of this prompt
	Output  RawAgentOutput
}

// ErrNoModelWork is the error of a run that claims success but shows no trace of a model having
// worked.
var ErrNoModelWork = errors.New("the agent reported success but no model work was done; check the credentials")

// ErrKilled is the error of an agent whose process was killed by something other than us: a person,
// or a system that is short of memory.
var ErrKilled = errors.New("something outside of it killed the agent's process")

// ErrNoConversation is the error of a session that cannot be resumed because the agent has no
// usable record of it.
var ErrNoConversation = errors.New("the conversation cannot be resumed")

// RawAgentOutput is the process half's whole contract; enrichment happens elsewhere.
type RawAgentOutput struct {
	Agent         session.AgentID `json:"agent"`
	Stdout        BlobRef         `json:"stdout"`
	Stderr        BlobRef         `json:"stderr"`
	ExitCode      int             `json:"exitCode"`
	Signal        string          `json:"signal,omitempty"`
	StartMs       int64           `json:"startMs"`
	EndMs         int64           `json:"endMs"`
	DiskJSONLPath string          `json:"diskJsonlPath,omitempty"`
	TimedOut      bool            `json:"timedOut"`
	Argv          []string        `json:"argv"`
	Version       string          `json:"version"`
	KeyVisible    bool            `json:"keyVisible"`
}

// NotFoundError reports an agent that is not installed.
type NotFoundError struct {
	Agent session.AgentID
	Hint  string // the command that installs it
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("agent %s is not installed; %s", e.Agent, e.WayOut())
}

// WayOut says what to do about it.
func (e *NotFoundError) WayOut() string {
	if strings.HasPrefix(e.Hint, "put ") { // it is not a command
		return e.Hint
	}
	return "get it with: " + e.Hint
}

// AuthError reports that an agent has no credentials for its model, or no model at all.
type AuthError struct{ Reason string }

func (e *AuthError) Error() string { return e.Reason }

// CapabilityError reports something asked of an agent that it cannot do.
type CapabilityError struct {
	Agent   session.AgentID
	Missing string
	// Reason is a full sentence, for when "does not support" is not enough.
	Reason string
}

// Refuse returns a CapabilityError with a full sentence.
func Refuse(id session.AgentID, format string, args ...any) error {
	return &CapabilityError{Agent: id, Reason: fmt.Sprintf(format, args...)}
}

func (e *CapabilityError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return fmt.Sprintf("agent %s does not support %s", e.Agent, e.Missing)
}
