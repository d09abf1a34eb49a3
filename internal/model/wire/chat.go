package wire

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/fit-eval/fit/price"
)

// Chat is OpenAI's Chat Completions protocol, which most local servers imitate.
var Chat Protocol = chat{}

type chat struct{}

var chatInfo = func() Info {
	info := responsesInfo
	info.Name, info.Models = "chat", nil
	info.InputName, info.OutputName = "prompt_tokens", "completion_tokens"
	return info
}()

func (chat) Info() *Info              { return &chatInfo }
func (chat) Path(string, bool) string { return "/chat/completions" }

func (chat) Route(path string) (Route, bool) {
	return Route{Turn: true, Paid: true}, path == "/v1/chat/completions"
}

func (chat) ErrorBody(status int, e APIError) []byte { return openAIErrorBody(status, e) }

func (chat) ErrorEvent(status int, _ string, e APIError) Event {
	return Event{Data: openAIErrorBody(cmp.Or(status, 500), e)}
}

func (chat) Usage(report []byte) (price.TokenUsage, error) {
	var u ChatUsage
	err := json.Unmarshal(report, &u)
	return u.tokens(), err
}

// tokens returns what the report says.
func (u ChatUsage) tokens() price.TokenUsage {
	return openAITokens(u.PromptTokens, u.CompletionTokens, u.PromptTokensDetails, u.CompletionTokensDetails)
}

var finishReason = []byte(`"finish_reason":"`)

// Look takes the reason to stop for the end: some servers leave out the closing words.
func (chat) Look(data []byte) Glance {
	return Glance{
		Ends:    string(data) == chatDone || bytes.Contains(data, finishReason),
		Reports: reports(data, usageKey),
	}
}

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Model    string        `json:"model"`
	Messages []ChatMessage `json:"messages"`
	Tools    []ChatTool    `json:"tools,omitempty"`
	// MaxCompletionTokens is OpenAI's parameter; most servers that imitate it know only MaxTokens.
	MaxCompletionTokens int                `json:"max_completion_tokens,omitempty"`
	MaxTokens           int                `json:"max_tokens,omitempty"`
	Temperature         *float64           `json:"temperature,omitempty"`
	ReasoningEffort     string             `json:"reasoning_effort,omitempty"`
	Stream              bool               `json:"stream,omitempty"`
	StreamOptions       *ChatStreamOptions `json:"stream_options,omitempty"`
}

// ChatStreamOptions asks for the usage at the end of a stream.
type ChatStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// ChatMessage is one message of the conversation, or the reply.
type ChatMessage struct {
	Role    string        `json:"role"`
	Content OpenAIContent `json:"content"`
	// ReasoningContent is how many servers show the model's reasoning; some call it reasoning.
	ReasoningContent string         `json:"reasoning_content,omitempty"`
	Reasoning        string         `json:"reasoning,omitempty"`
	Refusal          string         `json:"refusal,omitempty"`
	ToolCalls        []ChatToolCall `json:"tool_calls,omitempty"`
	ToolCallID       string         `json:"tool_call_id,omitempty"`
}

// MarshalJSON writes the content as a plain string, which every server understands, and as null
// where there is none.
func (m ChatMessage) MarshalJSON() ([]byte, error) {
	type plain ChatMessage
	var content *string
	if text := m.Content.Text(); text != "" || len(m.Content) > 0 {
		content = &text
	}
	return json.Marshal(struct {
		plain
		Content *string `json:"content"`
	}{plain(m), content})
}

// ChatToolCall is a call of a function. In a stream, Index says which call a piece belongs to.
type ChatToolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function ChatFunction `json:"function"`
}

// ChatFunction is the name and the arguments of a call.
type ChatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// ChatTool is a function the client offers.
type ChatTool struct {
	Type     string           `json:"type"`
	Function ChatToolFunction `json:"function"`
}

// ChatToolFunction describes a function.
type ChatToolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// ChatCompletion is a whole reply.
type ChatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []ChatChoice `json:"choices"`
	Usage   *ChatUsage   `json:"usage,omitempty"`
}

// ChatChoice is one of the alternatives of a reply; there is only ever one.
type ChatChoice struct {
	Index        int         `json:"index"`
	Message      ChatMessage `json:"message"`
	FinishReason string      `json:"finish_reason"`
}

// ChatUsage is the token accounting of a reply. PromptTokens includes the cached ones.
type ChatUsage struct {
	PromptTokens            int64                 `json:"prompt_tokens"`
	CompletionTokens        int64                 `json:"completion_tokens"`
	TotalTokens             int64                 `json:"total_tokens"`
	PromptTokensDetails     ResponsesInputDetail  `json:"prompt_tokens_details"`
	CompletionTokensDetails ResponsesOutputDetail `json:"completion_tokens_details"`
}

// chatDone is the data of the last event of a stream.
const chatDone = "[DONE]"

// ChatEvents cuts a whole reply into the events of a stream. The usage is sent where withUsage says
// that the client asked for it.
func ChatEvents(c ChatCompletion, withUsage bool) []Event {
	var events []Event
	chunk := func(delta bool, choices []any, usage *ChatUsage) {
		value := map[string]any{
			"id": c.ID, "object": "chat.completion.chunk", "created": c.Created, "model": c.Model,
			"choices": choices,
		}
		if usage != nil {
			value["usage"] = usage
		}
		events = append(events, jsonEvent("", delta, value))
	}
	for _, choice := range c.Choices {
		emit := func(isDelta bool, delta map[string]any, finish any) {
			chunk(isDelta, []any{map[string]any{"index": choice.Index, "delta": delta, "finish_reason": finish}}, nil)
		}
		chatDeltas(choice.Message, func(delta map[string]any) { emit(true, delta, nil) })
		emit(false, map[string]any{}, choice.FinishReason)
	}
	if withUsage {
		chunk(false, []any{}, c.Usage)
	}
	return append(events, Event{Data: []byte(chatDone)})
}

func chatDeltas(m ChatMessage, emit func(map[string]any)) {
	emit(map[string]any{"role": "assistant", "content": ""})
	for _, piece := range pieces(m.ReasoningContent) {
		emit(map[string]any{"reasoning_content": piece})
	}
	for _, piece := range pieces(m.Content.Text()) {
		emit(map[string]any{"content": piece})
	}
	for _, piece := range pieces(m.Refusal) {
		emit(map[string]any{"refusal": piece})
	}
	for i, call := range m.ToolCalls {
		emit(map[string]any{"tool_calls": []any{ChatToolCall{
			Index:    &i,
			ID:       call.ID,
			Type:     "function",
			Function: ChatFunction{Name: call.Function.Name},
		}}})
		for _, piece := range pieces(call.Function.Arguments) {
			emit(map[string]any{"tool_calls": []any{ChatToolCall{Index: &i, Function: ChatFunction{Arguments: piece}}}})
		}
	}
}
