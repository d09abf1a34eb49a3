package builtin

import (
	"encoding/json"

	"github.com/fit-eval/fit/internal/model"
)

// The objects of the stream. Their names are those of the dialect that session.StreamDialect
// decodes.

type initEvent struct {
	Type           string       `json:"type"`
	Subtype        string       `json:"subtype"`
	SessionID      string       `json:"session_id"`
	Cwd            string       `json:"cwd"`
	Model          string       `json:"model"`
	Tools          []string     `json:"tools"`
	MCPServers     []serverInfo `json:"mcp_servers"`
	PermissionMode string       `json:"permissionMode"`
	Runtime        string       `json:"runtime"` // others speak the same dialect
	Version        string       `json:"agent_version"`
	Timestamp      string       `json:"timestamp"`
}

type serverInfo struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type messageEvent struct {
	Type      string  `json:"type"` // assistant or user
	Message   message `json:"message"`
	SessionID string  `json:"session_id"`
	UUID      string  `json:"uuid"`
	Timestamp string  `json:"timestamp"`
}

type message struct {
	ID         string     `json:"id,omitempty"`
	Role       string     `json:"role"`
	Model      string     `json:"model,omitempty"`
	Content    []block    `json:"content"`
	StopReason string     `json:"stop_reason,omitempty"`
	Usage      *usageJSON `json:"usage,omitempty"`
}

type block struct {
	Type      string          `json:"type"` // text, thinking, tool_use, tool_result
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   *string         `json:"content,omitempty"`
	IsError   *bool           `json:"is_error,omitempty"`
}

// usageJSON is a token usage in the spelling of messages and results.
type usageJSON struct {
	InputTokens          int64    `json:"input_tokens"`
	OutputTokens         int64    `json:"output_tokens"`
	CacheReadTokens      int64    `json:"cache_read_input_tokens"`
	CacheWriteTokens     int64    `json:"cache_creation_input_tokens"`
	CacheWriteLongTokens int64    `json:"-"`
	ReasoningTokens      int64    `json:"-"`
	TotalTokens          int64    `json:"-"`
	CostUSD              *float64 `json:"-"`
	CostSource           string   `json:"-"`
	Partial              bool     `json:"-"`
	Summed               bool     `json:"-"`
}

type retryEvent struct {
	Type         string `json:"type"`
	Subtype      string `json:"subtype"`
	Attempt      int    `json:"attempt"`
	MaxRetries   int    `json:"max_retries"`
	RetryDelayMs int64  `json:"retry_delay_ms"`
	ErrorStatus  *int   `json:"error_status"`
	Error        string `json:"error"`
	SessionID    string `json:"session_id"`
}

type compactEvent struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"` // compact_boundary
	Dropped   int    `json:"dropped_results"`
	SessionID string `json:"session_id"`
}

// The subtypes of the closing event.
const (
	resultSuccess   = "success"
	resultMaxTurns  = "error_max_turns"
	resultBudget    = "error_max_budget_usd"
	resultExecution = "error_during_execution"
)

type resultEvent struct {
	Type           string   `json:"type"`
	Subtype        string   `json:"subtype"`
	IsError        bool     `json:"is_error"`
	Result         string   `json:"result,omitempty"`
	Errors         []string `json:"errors,omitempty"`
	TerminalReason string   `json:"terminal_reason"`
	APIErrorStatus *int     `json:"api_error_status"`
	NumTurns       int      `json:"num_turns"`
	DurationMs     int64    `json:"duration_ms"`
	// of this prompt; absent where the model has no price
	TotalCostUSD *float64                  `json:"total_cost_usd,omitempty"`
	Usage        usageJSON                 `json:"usage"`
	ModelUsage   map[string]modelUsageJSON `json:"modelUsage"`
	SessionID    string                    `json:"session_id"`
	UUID         string                    `json:"uuid"`
}

// modelUsageJSON is a token usage in the spelling of the sums by model.
type modelUsageJSON struct {
	InputTokens          int64    `json:"inputTokens"`
	OutputTokens         int64    `json:"outputTokens"`
	CacheReadTokens      int64    `json:"cacheReadInputTokens"`
	CacheWriteTokens     int64    `json:"cacheCreationInputTokens"`
	CacheWriteLongTokens int64    `json:"-"`
	ReasoningTokens      int64    `json:"-"`
	TotalTokens          int64    `json:"-"`
	CostUSD              *float64 `json:"costUSD,omitempty"`
	CostSource           string   `json:"-"`
	Partial              bool     `json:"-"`
	Summed               bool     `json:"-"`
}

// blocksOf shows the model's reply in the stream's form.
func blocksOf(blocks []model.Block) []block {
	out := make([]block, 0, len(blocks))
	for _, b := range blocks {
		switch {
		case b.Type == model.BlockText:
			out = append(out, block{Type: "text", Text: b.Text})
		case b.Type == model.BlockThinking:
			out = append(out, block{Type: "thinking", Thinking: b.Text})
		case b.Type == model.BlockToolCall && b.Call != nil:
			out = append(out, block{
				Type:  "tool_use",
				ID:    b.Call.ID,
				Name:  b.Call.Name,
				Input: b.Call.Input,
			})
		}
	}
	return out
}
