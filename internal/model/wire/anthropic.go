package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/price"
)

// Anthropic is the Messages protocol.
var Anthropic Protocol = anthropic{}

type anthropic struct{}

var anthropicInfo = Info{
	Name:          "anthropic",
	Vendor:        "anthropic",
	URL:           "https://api.anthropic.com/v1",
	Version:       "/v1",
	KeyVariable:   "ANTHROPIC_API_KEY",
	TokenVariable: "ANTHROPIC_AUTH_TOKEN",
	URLVariable:   "ANTHROPIC_BASE_URL",
	KeyHeader:     "X-Api-Key",
	Header:        http.Header{"Anthropic-Version": {"2023-06-01"}},
	Models:        lazyregexp.New(`^claude`),
	DefaultModel:  "claude-sonnet-4-5",
	InputName:     "input_tokens",
	OutputName:    "output_tokens",
	TextForm:      textForm,
}

// textForm is how most protocols write a piece of text.
const textForm = `{"type":"text","text":%q}`

func (anthropic) Info() *Info              { return &anthropicInfo }
func (anthropic) Path(string, bool) string { return "/messages" }

func (anthropic) Route(path string) (Route, bool) {
	switch path {
	case "/v1/messages":
		return Route{Turn: true, Paid: true}, true
	case "/v1/messages/count_tokens":
		return Route{Counts: true}, true
	}
	return Route{}, false
}

func (anthropic) ErrorBody(status int, e APIError) []byte { return AnthropicErrorBody(status, e) }

func (anthropic) ErrorEvent(status int, _ string, e APIError) Event {
	return Event{Name: "error", Data: AnthropicErrorBody(cmp.Or(status, 529), e)}
}

func (anthropic) Usage(report []byte) (price.TokenUsage, error) {
	var u AnthropicUsage
	err := json.Unmarshal(report, &u)
	return u.tokens(), err
}

// tokens returns what the report says.
func (u AnthropicUsage) tokens() price.TokenUsage {
	usage := price.TokenUsage{
		InputTokens:      u.InputTokens,
		OutputTokens:     u.OutputTokens,
		CacheReadTokens:  u.CacheReadInputTokens,
		CacheWriteTokens: u.CacheCreationInputTokens,
	}
	if u.CacheCreation != nil {
		usage.CacheWriteLongTokens = u.CacheCreation.Ephemeral1h
	}
	return usage
}

var (
	messageStop = []byte(`"message_stop"`)
	blockDelta  = []byte(`"content_block_delta"`)
)

func (anthropic) Look(data []byte) Glance {
	switch {
	case len(data) < 64 && bytes.Contains(data, messageStop):
		return Glance{Ends: true}
	case bytes.Contains(data, blockDelta):
		return Glance{Piece: true}
	}
	return Glance{Reports: reports(data, usageKey)}
}

// AnthropicRequest is the body of POST /v1/messages.
type AnthropicRequest struct {
	Model       string           `json:"model"`
	MaxTokens   int              `json:"max_tokens"`
	System      AnthropicContent `json:"system,omitempty"`
	Messages    []AnthropicTurn  `json:"messages"`
	Tools       []AnthropicTool  `json:"tools,omitempty"`
	Temperature *float64         `json:"temperature,omitempty"`
	Stream      bool             `json:"stream,omitempty"`
}

// AnthropicTurn is one message of the conversation.
type AnthropicTurn struct {
	Role    string           `json:"role"`
	Content AnthropicContent `json:"content"`
}

// AnthropicTool is a tool the client offers.
type AnthropicTool struct {
	// Type is empty for the client's own tools and names a version for the vendor's.
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// AnthropicCacheControl marks the end of a prefix that the server should cache.
type AnthropicCacheControl struct {
	Type string `json:"type"`
}

// AnthropicContent is a list of blocks; on the wire it may also be a plain string.
type AnthropicContent []AnthropicBlock

// UnmarshalJSON accepts a string, a list of blocks, or null. Any other value is content of a kind
// that does not concern us and reads as empty.
func (c *AnthropicContent) UnmarshalJSON(data []byte) error {
	*c = nil
	data = bytes.TrimSpace(data)
	if text, ok := jsonString(data); ok {
		*c = AnthropicContent{{Type: "text", Text: text}}
	} else if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*[]AnthropicBlock)(c))
	}
	return nil
}

// AnthropicBlock is one content block; Type says which of the fields count.
type AnthropicBlock struct {
	Type string `json:"type"`

	Text string `json:"text"` // text

	Thinking  string `json:"thinking"`  // thinking
	Signature string `json:"signature"` // thinking
	Data      string `json:"data"`      // redacted_thinking

	ID    string          `json:"id"`    // tool_use
	Name  string          `json:"name"`  // tool_use
	Input json.RawMessage `json:"input"` // tool_use

	ToolUseID string           `json:"tool_use_id"` // tool_result
	Content   AnthropicContent `json:"content"`     // tool_result
	IsError   bool             `json:"is_error"`    // tool_result

	CacheControl *AnthropicCacheControl `json:"cache_control"`
}

// MarshalJSON writes the fields that belong to the block's type, empty or not: the vendors' clients
// insist on some that are empty.
func (b AnthropicBlock) MarshalJSON() ([]byte, error) {
	m := map[string]any{"type": b.Type}
	switch b.Type {
	case "text":
		m["text"] = b.Text
	case "thinking":
		m["thinking"], m["signature"] = b.Thinking, b.Signature
	case "redacted_thinking":
		m["data"] = b.Data
	case "tool_use":
		m["id"], m["name"], m["input"] = b.ID, b.Name, objectOrEmpty(b.Input)
	case "tool_result":
		m["tool_use_id"], m["content"] = b.ToolUseID, b.Content
		if b.Content == nil {
			m["content"] = AnthropicContent{}
		}
		if b.IsError {
			m["is_error"] = true
		}
	}
	if b.CacheControl != nil {
		m["cache_control"] = b.CacheControl
	}
	return json.Marshal(m)
}

// objectOrEmpty returns raw, or an empty object where it is not JSON: a tool's input must be an
// object in this protocol.
func objectOrEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !json.Valid(raw) {
		return json.RawMessage("{}")
	}
	return raw
}

// AnthropicMessage is a whole reply.
type AnthropicMessage struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      AnthropicContent `json:"content"`
	StopReason   *string          `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        AnthropicUsage   `json:"usage"`
}

// AnthropicUsage is the token accounting of a reply. InputTokens does not include the two cache
// figures.
type AnthropicUsage struct {
	InputTokens              int64                   `json:"input_tokens"`
	CacheCreationInputTokens int64                   `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64                   `json:"cache_read_input_tokens"`
	CacheCreation            *AnthropicCacheCreation `json:"cache_creation,omitempty"`
	OutputTokens             int64                   `json:"output_tokens"`
	ServiceTier              string                  `json:"service_tier,omitempty"`
}

// AnthropicCacheCreation splits the written cache tokens by their time to live.
type AnthropicCacheCreation struct {
	Ephemeral5m int64 `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int64 `json:"ephemeral_1h_input_tokens"`
}

// AnthropicEvents cuts a whole reply into the events of a stream.
func AnthropicEvents(m AnthropicMessage) []Event {
	start := m
	start.Content, start.StopReason, start.StopSequence = AnthropicContent{}, nil, nil
	start.Usage.OutputTokens = 1
	events := []Event{jsonEvent("message_start", false, map[string]any{"type": "message_start", "message": start})}
	for i, block := range m.Content {
		events = append(events, anthropicBlockEvents(i, block)...)
	}
	return append(events,
		jsonEvent("message_delta", false, map[string]any{
			"type":  "message_delta",
			"delta": map[string]any{"stop_reason": m.StopReason, "stop_sequence": m.StopSequence},
			"usage": m.Usage,
		}),
		jsonEvent("message_stop", false, map[string]any{"type": "message_stop"}))
}

func anthropicBlockEvents(index int, block AnthropicBlock) []Event {
	empty := block
	empty.Text, empty.Thinking, empty.Signature, empty.Input = "", "", "", nil
	events := []Event{jsonEvent("content_block_start", false,
		map[string]any{"type": "content_block_start", "index": index, "content_block": empty})}
	if index == 0 {
		events = append(events, jsonEvent("ping", false, map[string]any{"type": "ping"}))
	}
	delta := func(fields map[string]any) {
		events = append(events, jsonEvent("content_block_delta", true,
			map[string]any{"type": "content_block_delta", "index": index, "delta": fields}))
	}
	switch block.Type {
	case "text":
		for _, piece := range pieces(block.Text) {
			delta(map[string]any{"type": "text_delta", "text": piece})
		}
	case "thinking":
		for _, piece := range pieces(block.Thinking) {
			delta(map[string]any{"type": "thinking_delta", "thinking": piece})
		}
		delta(map[string]any{"type": "signature_delta", "signature": block.Signature})
	case "tool_use":
		// The text goes out as it is, valid or not: a broken input is something models do produce.
		for _, piece := range pieces(string(block.Input)) {
			delta(map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
	}
	return append(events, jsonEvent("content_block_stop", false,
		map[string]any{"type": "content_block_stop", "index": index}))
}
