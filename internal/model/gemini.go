package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/fit-eval/fit/internal/model/wire"
)

// Gemini is the protocol of Google's models: POST /v1beta/models/NAME:generateContent.
const Gemini Protocol = "gemini"

// geminiCodec speaks Gemini's generateContent. The model's name is part of the address.
type geminiCodec struct{ wire.Protocol }

func (geminiCodec) encode(req Request, _ bool) ([]byte, error) {
	out := wire.GeminiRequest{
		Contents: []wire.GeminiContent{},
		GenerationConfig: &wire.GeminiGenerationConfig{
			MaxOutputTokens: max(req.MaxTokens, 0),
			Temperature:     req.Temperature,
		},
	}
	if req.System != "" {
		out.SystemInstruction = &wire.GeminiContent{Parts: []wire.GeminiPart{{Text: req.System}}}
	}
	var tools []wire.GeminiFunction
	for _, tool := range req.Tools {
		tools = append(tools, wire.GeminiFunction{
			Name:                 tool.Name,
			Description:          tool.Description,
			ParametersJSONSchema: schemaOrObject(tool.Schema),
		})
	}
	if len(tools) > 0 {
		out.Tools = []wire.GeminiTool{{FunctionDeclarations: tools}}
	}
	names := map[string]string{} // of the calls by their ids: results must repeat them
	for i, message := range req.Messages {
		content := wire.GeminiContent{Role: "user", Parts: []wire.GeminiPart{}}
		if message.Role == Assistant {
			content.Role = "model"
		}
		for _, b := range message.Blocks {
			part, err := geminiPart(b, names)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
			if part != (wire.GeminiPart{}) {
				content.Parts = append(content.Parts, part)
			}
		}
		if len(content.Parts) == 0 {
			content.Parts = []wire.GeminiPart{{Text: orPlaceholder("")}}
		}
		out.Contents = append(out.Contents, content)
	}
	return json.Marshal(out)
}

// geminiPart renders a block; one that must not be sent gives an empty part. Thoughts are not sent
// back: only the signature matters, which is with the call that follows.
func geminiPart(b Block, names map[string]string) (wire.GeminiPart, error) {
	switch {
	case b.Type == BlockText:
		return wire.GeminiPart{Text: b.Text}, nil
	case b.Type == BlockThinking:
		return wire.GeminiPart{}, nil
	case b.Type == BlockToolCall && b.Call != nil:
		names[b.Call.ID] = b.Call.Name
		call := &wire.GeminiFunctionCall{ID: b.Call.ID, Name: b.Call.Name, Args: b.Call.Input}
		return wire.GeminiPart{FunctionCall: call, ThoughtSignature: b.Signature}, nil
	case b.Type == BlockToolResult && b.Result != nil:
		key := "output"
		if b.Result.IsError {
			key = "error"
		}
		response, err := json.Marshal(map[string]string{key: b.Result.Text})
		if err != nil {
			return wire.GeminiPart{}, err
		}
		return wire.GeminiPart{FunctionResponse: &wire.GeminiFunctionResponse{
			ID: b.Result.CallID, Name: names[b.Result.CallID], Response: response,
		}}, nil
	default:
		return wire.GeminiPart{}, fmt.Errorf("block of type %q is incomplete or unknown", b.Type)
	}
}

func (geminiCodec) decode(body []byte) (Response, error) {
	var r wire.GeminiResponse
	if err := json.Unmarshal(body, &r); err != nil {
		return Response{}, fmt.Errorf("decode reply: %w", err)
	}
	if len(r.Candidates) == 0 && r.PromptFeedback == nil {
		return Response{}, wire.DecodeError(body)
	}
	return geminiResponse(r)
}

// geminiStops translates the reasons to stop.
var geminiStops = map[string]StopReason{
	"STOP": StopEndTurn, "MAX_TOKENS": StopMaxTokens, "SAFETY": StopRefusal, "RECITATION": StopRefusal,
	"BLOCKLIST": StopRefusal, "PROHIBITED_CONTENT": StopRefusal, "SPII": StopRefusal,
}

func geminiResponse(r wire.GeminiResponse) (Response, error) {
	reply := Response{ID: r.ResponseID}
	if r.PromptFeedback != nil && r.PromptFeedback.BlockReason != "" {
		reply.StopReason = StopRefusal
		reply.Blocks = []Block{{Type: BlockText, Text: "the prompt was blocked: " + r.PromptFeedback.BlockReason}}
		return reply, nil
	}
	if len(r.Candidates) == 0 || r.Candidates[0].FinishReason == "" {
		return Response{}, errors.New("reply has no finishReason")
	}
	finish := r.Candidates[0].FinishReason
	if finish == "MALFORMED_FUNCTION_CALL" || finish == "UNEXPECTED_TOOL_CALL" {
		return Response{}, fmt.Errorf("the model wrote an invalid tool call (%s)", finish)
	}
	reply.StopReason = StopReason(finish)
	if stop, known := geminiStops[finish]; known {
		reply.StopReason = stop
	}
	for i, part := range r.Candidates[0].Content.Parts {
		switch {
		case part.FunctionCall != nil:
			call := part.FunctionCall
			id := call.ID
			if id == "" { // older services give calls no id
				id = "call_" + reply.ID + "_" + strconv.Itoa(i)
			}
			reply.Blocks = append(reply.Blocks, Block{
				Type:      BlockToolCall,
				Signature: part.ThoughtSignature,
				Call:      toolCall(id, call.Name, string(call.Args)),
			})
			reply.StopReason = StopToolUse
		case part.Text == "":
		case part.Thought:
			reply.Blocks = append(reply.Blocks, Block{Type: BlockThinking, Text: part.Text})
		default:
			reply.Blocks = append(reply.Blocks, Block{Type: BlockText, Text: part.Text})
		}
	}
	return reply, nil
}
