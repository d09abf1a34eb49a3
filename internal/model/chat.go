package model

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
)

// chatCodec speaks OpenAI Chat Completions, to the vendor or to one of the many servers that
// imitate it.
type chatCodec struct{ wire.Protocol }

// encode knows that OpenAI itself has renamed a parameter; other servers know only the old name.
func (chatCodec) encode(req Request, vendor bool) ([]byte, error) {
	out := wire.ChatRequest{
		Model:           req.Model,
		Temperature:     req.Temperature,
		ReasoningEffort: req.Effort,
	}
	if vendor {
		out.MaxCompletionTokens = max(req.MaxTokens, 0)
	} else {
		out.MaxTokens = max(req.MaxTokens, 0)
	}
	for _, tool := range req.Tools {
		out.Tools = append(out.Tools, wire.ChatTool{Type: "function", Function: wire.ChatToolFunction{
			Name: tool.Name, Description: tool.Description, Parameters: schemaOrObject(tool.Schema),
		}})
	}
	if req.System != "" {
		out.Messages = append(out.Messages, chatText("system", req.System))
	}
	for i, message := range req.Messages {
		messages, err := chatMessages(message)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		out.Messages = append(out.Messages, messages...)
	}
	return json.Marshal(out)
}

func chatText(role, text string) wire.ChatMessage {
	return wire.ChatMessage{Role: role, Content: wire.OpenAIContent{{Type: "text", Text: text}}}
}

// chatMessages renders a message: tool results become separate messages and must come before any
// text; thinking is not sent back.
func chatMessages(message Message) ([]wire.ChatMessage, error) {
	var results []wire.ChatMessage
	own := wire.ChatMessage{Role: string(message.Role)}
	for _, b := range message.Blocks {
		switch {
		case b.Type == BlockText:
			own.Content = append(own.Content, wire.OpenAIPart{Type: "text", Text: b.Text})
		case b.Type == BlockThinking:
		case b.Type == BlockToolCall && b.Call != nil:
			own.ToolCalls = append(own.ToolCalls, wire.ChatToolCall{
				ID: b.Call.ID, Type: "function",
				Function: wire.ChatFunction{Name: b.Call.Name, Arguments: string(b.Call.Input)},
			})
		case b.Type == BlockToolResult && b.Result != nil:
			result := chatText("tool", resultText(*b.Result))
			result.ToolCallID = b.Result.CallID
			results = append(results, result)
		default:
			return nil, fmt.Errorf("block of type %q is incomplete or unknown", b.Type)
		}
	}
	if len(own.Content) > 0 || len(own.ToolCalls) > 0 || len(results) == 0 {
		results = append(results, own)
	}
	return results, nil
}

func (chatCodec) decode(body []byte) (Response, error) {
	var c wire.ChatCompletion
	if err := json.Unmarshal(body, &c); err != nil {
		return Response{}, fmt.Errorf("decode reply: %w", err)
	}
	if len(c.Choices) == 0 {
		return Response{}, wire.DecodeError(body) // some servers report errors with status 200
	}
	return chatResponse(c)
}

func chatResponse(c wire.ChatCompletion) (Response, error) {
	choice := c.Choices[0]
	if choice.FinishReason == "" {
		return Response{}, errors.New("reply has no finish_reason")
	}
	reply := Response{ID: c.ID, StopReason: finishReason(choice.FinishReason)}
	m := choice.Message
	if thought := m.ReasoningContent + m.Reasoning; thought != "" {
		reply.Blocks = append(reply.Blocks, Block{Type: BlockThinking, Text: thought})
	}
	if text := m.Content.Text(); text != "" {
		reply.Blocks = append(reply.Blocks, Block{Type: BlockText, Text: text})
	}
	if m.Refusal != "" {
		reply.Blocks = append(reply.Blocks, Block{Type: BlockText, Text: m.Refusal})
		reply.StopReason = StopRefusal
	}
	for _, call := range m.ToolCalls {
		reply.Blocks = append(reply.Blocks,
			Block{Type: BlockToolCall, Call: toolCall(call.ID, call.Function.Name, call.Function.Arguments)})
		if reply.StopReason == StopEndTurn {
			reply.StopReason = StopToolUse // servers that imitate the protocol forget to say so
		}
	}
	return reply, nil
}
