package events

import "encoding/json"

// The types of events.
const (
	TypeText       = "text"
	typeToolCall   = "tool_call"
	typeToolResult = "tool_result"
	TypeUsage      = "usage"
	TypeError      = "error"
	TypeResult     = "result"
)

// Text is something that the agent says or thinks.
type Text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Usage counts the tokens consumed since the last event of this type. InputTokens are those that
// were not read from or written to a cache.
type Usage struct {
	Type             string   `json:"type"`
	Model            string   `json:"model,omitempty"`
	InputTokens      int64    `json:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
	CacheReadTokens  int64    `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64    `json:"cache_write_tokens,omitempty"`
	CostUSD          *float64 `json:"cost_usd,omitempty"`
}

// Error reports a failure. It does not end the prompt; the result does.
type Error struct {
	Type     string `json:"type"`
	Kind     string `json:"kind,omitempty"` // one of kinds; empty: found out from status and message
	Status   int    `json:"status,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Message  string `json:"message"`
	Retrying bool   `json:"retrying,omitempty"`
}

// Result is how a prompt ended.
type Result struct {
	Type    string `json:"type"`
	Success bool   `json:"success"`
	// Text is the answer, or what went wrong.
	Text string `json:"text,omitempty"`
	// Kind says why a prompt failed, as in Error; empty is the kind of the last error.
	Kind    string `json:"kind,omitempty"`
	Session string `json:"session,omitempty"`
	// ExitCode is set if fit wrote the event for a program that ended without one.
	ExitCode *int `json:"exit_code,omitempty"`
}

// Line returns an event as a line of JSON, without its end.
func Line(event any) []byte {
	line, err := json.Marshal(event)
	if err != nil {
		return []byte(`{"type":"error","message":"an event could not be encoded"}`) // the structs above always can
	}
	return line
}
