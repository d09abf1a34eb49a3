package scripted

import (
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
)

// readChat reads a Chat Completions request.
func readChat(body []byte, _ wire.Route) (conversation, error) {
	var req wire.ChatRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return conversation{}, fmt.Errorf("this is not a Chat Completions request: %w", err)
	}
	c := conversation{model: req.Model, stream: req.Stream, wantsUsage: req.StreamOptions != nil &&
		req.StreamOptions.IncludeUsage}
	for _, t := range req.Tools {
		c.tools = append(c.tools, offeredTool{
			name: t.Function.Name, kind: "function",
			input: schemaFields(t.Function.Parameters),
		})
	}
	for _, m := range req.Messages {
		switch m.Role {
		case "assistant":
			c.reply(m.Content.Text(), "")
			for _, call := range m.ToolCalls {
				c.reply("", call.ID)
			}
		case "system", "developer":
			c.system += "\n" + m.Content.Text()
		case "tool":
			c.result(m.Content.Text())
		default:
			c.prompt(partTexts(m.Content))
		}
	}
	return c, nil
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
