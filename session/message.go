package session

import (
	"strconv"
	"strings"
)

// AssistantMessage reports the parts of a message of the model to a fold.
type AssistantMessage struct {
	Origin Origin
	Fold   *Fold
}

// Text reports what the model said.
func (m AssistantMessage) Text(text string) { m.Fold.Message(m.Origin, "assistant", text, "") }

// Thinking reports what the model thought.
func (m AssistantMessage) Thinking(text string) { m.Fold.Thinking(m.Origin, text) }

// Call reports a tool call.
func (m AssistantMessage) Call(id, name string, args []byte) {
	m.Fold.ToolCall(m.Origin, ToolUse{ID: id, Name: name, Args: args})
}

// ServiceResult reports the result of a tool that the model's service ran itself.
func (m AssistantMessage) ServiceResult(callID, content string) {
	m.Fold.ToolResult(m.Origin, Returned{CallID: callID, Content: content})
}

// Unknown counts a part that is not understood.
func (m AssistantMessage) Unknown() { m.Fold.Unknown() }

// UserMessage reports the parts of a message to the model to a fold: what a person said, and what
// the agent added to the conversation itself.
type UserMessage struct {
	Origin Origin
	Fold   *Fold
	Label  string // of a special message
}

// Text reports a text. Reminders and interruptions are recognised by how they begin.
func (m UserMessage) Text(text string) {
	switch {
	case strings.HasPrefix(text, "<system-reminder>"):
		m.Fold.SystemPrompt(m.Origin, "stream", "reminder", text)
	case strings.HasPrefix(text, "[Request interrupted"):
		m.Fold.Message(m.Origin, "user", text, "interrupted")
	default:
		m.Fold.Message(m.Origin, "user", text, m.Label)
	}
}

// Attached reports something that is not text.
func (m UserMessage) Attached(kind string) {
	m.Fold.Message(m.Origin, "user", "["+kind+"]", m.Label)
}

// Result reports the result of a tool call. The result of a failed command begins with its exit
// code.
func (m UserMessage) Result(callID string, isError bool, content string) {
	result := Returned{CallID: callID, IsError: isError, Content: content}
	if isError {
		result.ExitCode = ExitCode(content)
	}
	m.Fold.ToolResult(m.Origin, result)
}

// Unknown counts a part that is not understood.
func (m UserMessage) Unknown() { m.Fold.Unknown() }

// ExitCode reads the exit code that a failed command's result begins with; nil if there is none.
func ExitCode(content string) *int {
	rest, ok := strings.CutPrefix(content, "Exit code ")
	if !ok {
		return nil
	}
	digits, _, _ := strings.Cut(rest, "\n")
	code, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return nil
	}
	return &code
}
