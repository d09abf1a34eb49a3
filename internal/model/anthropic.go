package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
)

// anthropicCodec speaks Anthropic Messages.
type anthropicCodec struct{ wire.Protocol }

func (anthropicCodec) encode(req Request, _ bool) ([]byte, error) {
	out := wire.AnthropicRequest{
		Model:       req.Model,
		MaxTokens:   req.MaxTokens,
		Temperature: req.Temperature,
	}
	if out.MaxTokens <= 0 {
		out.MaxTokens = defaultMaxTokens
	}
	for _, tool := range req.Tools {
		out.Tools = append(out.Tools, wire.AnthropicTool{
			Name: tool.Name, Description: tool.Description,
			InputSchema: schemaOrObject(tool.Schema),
		})
	}
	if req.System != "" {
		// The end of the system prompt ends the part that never changes: tools come before it.
		// Caching it is what makes long sessions affordable.
		out.System = wire.AnthropicContent{{Type: "text", Text: req.System, CacheControl: ephemeral()}}
	}
	for i, message := range req.Messages {
		turn, err := anthropicTurn(message)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		out.Messages = append(out.Messages, turn)
	}
	cacheLastBlock(out.Messages)
	return json.Marshal(out)
}

func ephemeral() *wire.AnthropicCacheControl { return &wire.AnthropicCacheControl{Type: "ephemeral"} }

// cacheLastBlock asks the server to remember the conversation so far, which the next request
// repeats. Thinking cannot carry the mark.
func cacheLastBlock(turns []wire.AnthropicTurn) {
	if len(turns) == 0 {
		return
	}
	content := turns[len(turns)-1].Content
	if len(content) == 0 {
		return
	}
	if last := &content[len(content)-1]; last.Type == "tool_result" || (last.Type == "text" && last.Text != "") {
		last.CacheControl = ephemeral()
	}
}

// schemaOrObject fills in the schema of a tool that takes nothing.
func schemaOrObject(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return schema
}

func anthropicTurn(message Message) (wire.AnthropicTurn, error) {
	turn := wire.AnthropicTurn{Role: string(message.Role)}
	for _, b := range message.Blocks {
		switch {
		case b.Type == BlockText && b.Text == "":
			// The API refuses empty text, which models do produce.
		case b.Type == BlockText:
			turn.Content = append(turn.Content, wire.AnthropicBlock{Type: "text", Text: b.Text})
		case b.Type == BlockThinking && b.Signature == "":
			// Thinking of another vendor's model cannot be verified and would be refused.
		case b.Type == BlockThinking && b.Hidden:
			turn.Content = append(turn.Content, wire.AnthropicBlock{Type: "redacted_thinking", Data: b.Signature})
		case b.Type == BlockThinking:
			turn.Content = append(turn.Content,
				wire.AnthropicBlock{Type: "thinking", Thinking: b.Text, Signature: b.Signature})
		case b.Type == BlockToolCall && b.Call != nil:
			turn.Content = append(turn.Content, wire.AnthropicBlock{
				Type:  "tool_use",
				ID:    b.Call.ID,
				Name:  b.Call.Name,
				Input: b.Call.Input,
			})
		case b.Type == BlockToolResult && b.Result != nil:
			turn.Content = append(turn.Content, wire.AnthropicBlock{
				Type:      "tool_result",
				ToolUseID: b.Result.CallID,
				IsError:   b.Result.IsError,
				Content:   wire.AnthropicContent{{Type: "text", Text: orPlaceholder(b.Result.Text)}},
			})
		default:
			return turn, fmt.Errorf("block of type %q is incomplete or unknown", b.Type)
		}
	}
	if len(turn.Content) == 0 {
		turn.Content = wire.AnthropicContent{{Type: "text", Text: orPlaceholder("")}}
	}
	return turn, nil
}

// orPlaceholder replaces empty content where the API does not accept it.
func orPlaceholder(text string) string { return cmp.Or(text, "(empty)") }

func (anthropicCodec) decode(body []byte) (Response, error) {
	var message wire.AnthropicMessage
	if err := json.Unmarshal(body, &message); err != nil {
		return Response{}, fmt.Errorf("decode reply: %w", err)
	}
	return anthropicResponse(message)
}

func anthropicResponse(m wire.AnthropicMessage) (Response, error) {
	if m.StopReason == nil {
		return Response{}, errors.New("reply has no stop_reason")
	}
	reply := Response{
		ID:         m.ID,
		StopReason: StopReason(*m.StopReason),
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			reply.Blocks = append(reply.Blocks, Block{Type: BlockText, Text: b.Text})
		case "thinking":
			reply.Blocks = append(reply.Blocks, Block{Type: BlockThinking, Text: b.Thinking, Signature: b.Signature})
		case "redacted_thinking":
			reply.Blocks = append(reply.Blocks, Block{Type: BlockThinking, Signature: b.Data, Hidden: true})
		case "tool_use":
			reply.Blocks = append(reply.Blocks,
				Block{Type: BlockToolCall, Call: toolCall(b.ID, b.Name, string(b.Input))})
		}
	}
	return reply, nil
}
