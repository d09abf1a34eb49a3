package scripted

import (
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/price"
)

// protocol is one wire format as the server needs it.
type protocol struct {
	wire.Protocol
	// read understands a request.
	read func(body []byte, to wire.Route) (conversation, error)
	// render makes the whole reply and the events of the streamed one.
	render func(r reply) (whole any, events func() []wire.Event)
	// counted is the format of an answer to a question for the number of tokens.
	counted string
}

// protocols are those that the server speaks.
var protocols = []protocol{
	{wire.Anthropic, readAnthropic, renderAnthropic, `{"input_tokens":%d}`},
	{wire.Responses, readResponses, renderResponses, ""},
	{wire.Chat, readChat, renderChat, ""},
	{wire.Gemini, readGemini, renderGemini, `{"totalTokens":%d}`},
}

// errorEvent reports an error in the middle of a reply.
func (p protocol) errorEvent(r reply, e wire.APIError) wire.Event {
	if p.Protocol == wire.Responses { // whose event repeats the reply
		return wire.ResponsesErrorEvent(responsesReply(r), e)
	}
	return p.ErrorEvent(0, r.conv.model, e)
}

// reply is a turn that is about to be said.
type reply struct {
	pick
	conv  conversation
	calls []toolCall
	usage price.TokenUsage
}

// newReply settles what a turn leaves open.
func newReply(p pick, c conversation, s *Script) reply {
	r := reply{pick: p, conv: c, usage: price.TokenUsage(defaultUsage)}
	switch {
	case p.turn.Usage != nil:
		r.usage = price.TokenUsage(*p.turn.Usage)
	case s.Usage != nil:
		r.usage = price.TokenUsage(*s.Usage)
	}
	for _, call := range p.turn.Calls {
		r.calls = append(r.calls, c.resolve(call))
	}
	return r
}

// stop returns the stop reason in Anthropic's words.
func (r reply) stop() string {
	switch {
	case r.turn.Stop != "":
		return r.turn.Stop
	case len(r.calls) > 0:
		return "tool_use"
	default:
		return "end_turn"
	}
}

func (r reply) id(prefix string) string {
	return fmt.Sprintf("%s_%s_t%dv%d", prefix, r.conversation, r.index, r.visit)
}

// signature replaces the vendor's, which is opaque to clients.
const signature = "c2NyaXB0ZWQtbW9kZWw="

// created is the time every reply claims to be from: a reply must not depend on when it was asked
// for.
const created = 1767225600

func renderAnthropic(r reply) (any, func() []wire.Event) {
	stop := r.stop()
	m := wire.AnthropicMessage{
		ID:         r.id("msg"),
		Type:       "message",
		Role:       "assistant",
		Model:      r.conv.model,
		Content:    wire.AnthropicContent{},
		StopReason: &stop,
		Usage: wire.AnthropicUsage{
			InputTokens:              r.usage.InputTokens,
			OutputTokens:             r.usage.OutputTokens,
			CacheReadInputTokens:     r.usage.CacheReadTokens,
			CacheCreationInputTokens: r.usage.CacheWriteTokens,
			CacheCreation:            &wire.AnthropicCacheCreation{Ephemeral5m: r.usage.CacheWriteTokens},
			ServiceTier:              "standard",
		},
	}
	if r.turn.Thinking != "" {
		m.Content = append(m.Content, wire.AnthropicBlock{
			Type: "thinking", Thinking: r.turn.Thinking,
			Signature: signature,
		})
	}
	if r.turn.Text != "" {
		m.Content = append(m.Content, wire.AnthropicBlock{Type: "text", Text: r.turn.Text})
	}
	for k, call := range r.calls {
		m.Content = append(m.Content, wire.AnthropicBlock{
			Type:  "tool_use",
			ID:    r.callID("toolu", k),
			Name:  call.flatName(),
			Input: json.RawMessage(call.arguments),
		})
	}
	return m, func() []wire.Event { return wire.AnthropicEvents(m) }
}

func renderResponses(r reply) (any, func() []wire.Event) {
	response := responsesReply(r)
	return response, func() []wire.Event { return wire.ResponsesEvents(response) }
}

func responsesReply(r reply) wire.Response {
	u := r.usage
	input := u.Prompt()
	response := wire.Response{
		ID:                r.id("resp"),
		Object:            "response",
		CreatedAt:         created,
		Status:            "completed",
		Model:             r.conv.model,
		Output:            []wire.ResponsesItem{},
		ParallelToolCalls: true,
		ToolChoice:        "auto",
		Tools:             []wire.ResponsesTool{},
		Usage: &wire.ResponsesUsage{
			InputTokens:         input,
			OutputTokens:        u.OutputTokens,
			OutputTokensDetails: wire.ResponsesOutputDetail{ReasoningTokens: u.ReasoningTokens},
			TotalTokens:         input + u.OutputTokens,
			InputTokensDetails: wire.ResponsesInputDetail{
				CachedTokens:     u.CacheReadTokens,
				CacheWriteTokens: u.CacheWriteTokens,
			},
		},
	}
	if r.turn.Thinking != "" {
		response.Output = append(response.Output, wire.ResponsesItem{
			Type:             "reasoning",
			ID:               r.id("rs"),
			Summary:          wire.OpenAIContent{{Type: "summary_text", Text: r.turn.Thinking}},
			EncryptedContent: signature,
		})
	}
	part := wire.OpenAIPart{Type: "output_text", Text: r.turn.Text}
	switch r.stop() {
	case "refusal":
		part = wire.OpenAIPart{Type: "refusal", Refusal: r.turn.Text}
	case "max_tokens":
		response.Status, response.IncompleteDetails = "incomplete", &wire.ResponsesIncomplete{
			Reason: "max_output_tokens",
		}
	}
	if r.turn.Text != "" || part.Type == "refusal" {
		response.Output = append(response.Output, wire.ResponsesItem{
			Type:    "message",
			ID:      r.id("msg"),
			Role:    "assistant",
			Status:  response.Status,
			Content: wire.OpenAIContent{part},
		})
	}
	for k, call := range r.calls {
		item := wire.ResponsesItem{
			Type:      "function_call",
			ID:        r.callID("fc", k),
			CallID:    r.callID("call", k),
			Name:      call.name,
			Namespace: call.namespace,
			Status:    "completed",
			Arguments: call.arguments,
		}
		if call.custom {
			item.Type, item.ID, item.Arguments, item.Input = "custom_tool_call", r.callID("ctc", k), "", call.arguments
		}
		response.Output = append(response.Output, item)
	}
	return response
}

// chatFinish translates Anthropic's stop reasons.
var chatFinish = map[string]string{
	"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
	"refusal": "content_filter",
}

func renderChat(r reply) (any, func() []wire.Event) {
	u := r.usage
	prompt := u.Prompt()
	message := wire.ChatMessage{Role: "assistant", ReasoningContent: r.turn.Thinking}
	if r.turn.Text != "" {
		message.Content = wire.OpenAIContent{{Type: "text", Text: r.turn.Text}}
	}
	if r.stop() == "refusal" {
		message.Content, message.Refusal = nil, r.turn.Text
	}
	for k, call := range r.calls {
		message.ToolCalls = append(message.ToolCalls, wire.ChatToolCall{
			ID: r.callID("call", k), Type: "function",
			Function: wire.ChatFunction{Name: call.flatName(), Arguments: call.arguments},
		})
	}
	finish, ok := chatFinish[r.stop()]
	if !ok {
		finish = r.stop()
	}
	completion := wire.ChatCompletion{
		ID:      r.id("chatcmpl"),
		Object:  "chat.completion",
		Created: created,
		Model:   r.conv.model,
		Choices: []wire.ChatChoice{{Message: message, FinishReason: finish}},
		Usage: &wire.ChatUsage{
			PromptTokens:     prompt,
			CompletionTokens: u.OutputTokens,
			TotalTokens:      prompt + u.OutputTokens,
			PromptTokensDetails: wire.ResponsesInputDetail{
				CachedTokens:     u.CacheReadTokens,
				CacheWriteTokens: u.CacheWriteTokens,
			},
			CompletionTokensDetails: wire.ResponsesOutputDetail{ReasoningTokens: u.ReasoningTokens},
		},
	}
	return completion, func() []wire.Event { return wire.ChatEvents(completion, r.conv.wantsUsage) }
}
