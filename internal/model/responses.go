package model

import (
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
)

// responsesCodec speaks OpenAI Responses. The conversation is never stored with the vendor.
type responsesCodec struct{ wire.Protocol }

func (responsesCodec) encode(req Request, _ bool) ([]byte, error) {
	store := false
	out := wire.ResponsesRequest{
		Model:           req.Model,
		Instructions:    req.System,
		Input:           wire.ResponsesInput{},
		MaxOutputTokens: max(req.MaxTokens, 0),
		Temperature:     req.Temperature,
		Store:           &store,
	}
	if req.Effort != "" {
		out.Reasoning = &wire.ResponsesReasoning{Effort: req.Effort, Summary: "auto"}
		out.Include = []string{"reasoning.encrypted_content"} // what is not stored must be sent back
	}
	strict := false
	for _, tool := range req.Tools {
		out.Tools = append(out.Tools, wire.ResponsesTool{
			Type:        "function",
			Name:        tool.Name,
			Description: tool.Description,
			Parameters:  schemaOrObject(tool.Schema),
			Strict:      &strict,
		})
	}
	for i, message := range req.Messages {
		for _, b := range message.Blocks {
			item, err := responsesItem(message.Role, b)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
			if item.Type != "" {
				out.Input = append(out.Input, item)
			}
		}
	}
	return json.Marshal(out)
}

// responsesItem renders a block; a block that must not be sent gives an item without a type.
func responsesItem(role Role, b Block) (wire.ResponsesItem, error) {
	switch {
	case b.Type == BlockText:
		part := wire.OpenAIPart{Type: "input_text", Text: b.Text}
		if role == Assistant {
			part.Type = "output_text"
		}
		return wire.ResponsesItem{Type: "message", Role: string(role), Content: wire.OpenAIContent{part}}, nil
	case b.Type == BlockThinking && (b.ID == "" || b.Signature == ""):
		return wire.ResponsesItem{}, nil // reasoning of another vendor's model, or without the part that counts
	case b.Type == BlockThinking:
		item := wire.ResponsesItem{Type: "reasoning", ID: b.ID, EncryptedContent: b.Signature}
		if b.Text != "" {
			item.Summary = wire.OpenAIContent{{Type: "summary_text", Text: b.Text}}
		}
		return item, nil
	case b.Type == BlockToolCall && b.Call != nil:
		return wire.ResponsesItem{
			Type:      "function_call",
			CallID:    b.Call.ID,
			Name:      b.Call.Name,
			Arguments: string(b.Call.Input),
		}, nil
	case b.Type == BlockToolResult && b.Result != nil:
		return wire.ResponsesItem{
			Type: "function_call_output", CallID: b.Result.CallID,
			Output: wire.OpenAIContent{{Type: "text", Text: resultText(*b.Result)}},
		}, nil
	default:
		return wire.ResponsesItem{}, fmt.Errorf("block of type %q is incomplete or unknown", b.Type)
	}
}

// resultText says in words that a tool failed, because the OpenAI protocols have no field for it.
func resultText(r ToolResult) string {
	if r.IsError {
		return "[tool error] " + r.Text
	}
	return r.Text
}

func (responsesCodec) decode(body []byte) (Response, error) {
	var r wire.Response
	if err := json.Unmarshal(body, &r); err != nil {
		return Response{}, fmt.Errorf("decode reply: %w", err)
	}
	if err := r.Failure(); err != nil {
		return Response{}, err
	}
	return responsesResponse(r)
}

func responsesResponse(r wire.Response) (Response, error) {
	if r.Status != "completed" && r.Status != "incomplete" {
		return Response{}, fmt.Errorf("reply has status %q", r.Status)
	}
	reply := Response{ID: r.ID, StopReason: StopEndTurn}
	for _, item := range r.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				if part.Type == "refusal" {
					part.Text, reply.StopReason = part.Refusal, StopRefusal
				}
				reply.Blocks = append(reply.Blocks, Block{Type: BlockText, Text: part.Text})
			}
		case "reasoning":
			reply.Blocks = append(reply.Blocks, Block{
				Type:      BlockThinking,
				ID:        item.ID,
				Text:      item.Summary.Text(),
				Signature: item.EncryptedContent,
			})
		case "function_call":
			reply.Blocks = append(reply.Blocks,
				Block{Type: BlockToolCall, Call: toolCall(item.CallID, item.Name, item.Arguments)})
			reply.StopReason = StopToolUse
		}
	}
	if r.IncompleteDetails != nil {
		reply.StopReason = finishReason(r.IncompleteDetails.Reason)
	}
	return reply, nil
}

// finishReason translates the OpenAI protocols' reasons to stop.
func finishReason(reason string) StopReason {
	switch reason {
	case "stop":
		return StopEndTurn
	case "tool_calls", "function_call":
		return StopToolUse
	case "length", "max_output_tokens":
		return StopMaxTokens
	case "content_filter":
		return StopRefusal
	default:
		return StopReason(reason)
	}
}
