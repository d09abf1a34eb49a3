package scripted

import (
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
)

// readGemini reads a generateContent request. Its path has what others have in the body.
func readGemini(body []byte, to wire.Route) (conversation, error) {
	var req wire.GeminiRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return conversation{}, fmt.Errorf("this is not a generateContent request: %w", err)
	}
	c := conversation{model: to.Model, stream: to.Stream}
	if req.SystemInstruction != nil {
		for _, part := range req.SystemInstruction.Parts {
			c.system += part.Text + "\n"
		}
	}
	for _, tool := range req.Tools {
		for _, f := range tool.FunctionDeclarations {
			c.tools = append(c.tools, offeredTool{name: f.Name, kind: "function", input: schemaFields(f.Schema())})
		}
	}
	for _, content := range req.Contents {
		if content.Role == "model" {
			for _, part := range content.Parts {
				id := ""
				if part.FunctionCall != nil {
					id = part.FunctionCall.ID
				}
				c.reply(part.Text, id)
			}
			continue
		}
		c.readGeminiUser(content)
	}
	return c, nil
}

// readGeminiUser reads a user message. Text beside results of functions is the client's own remark
// on them.
func (c *conversation) readGeminiUser(content wire.GeminiContent) {
	var texts []string
	results := 0
	for _, part := range content.Parts {
		if part.FunctionResponse != nil {
			c.result(part.FunctionResponse.Text())
			results++
		} else {
			texts = append(texts, part.Text)
		}
	}
	if results == 0 {
		c.prompt(texts)
	}
}

// geminiFinish translates Anthropic's stop reasons.
var geminiFinish = map[string]string{
	"end_turn": "STOP", "stop_sequence": "STOP", "tool_use": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY",
}

func renderGemini(r reply) (any, func() []wire.Event) {
	u := r.usage
	prompt := u.Prompt()
	finish, ok := geminiFinish[r.stop()]
	if !ok {
		finish = r.stop()
	}
	parts := []wire.GeminiPart{}
	if r.turn.Thinking != "" {
		parts = append(parts, wire.GeminiPart{Text: r.turn.Thinking, Thought: true})
	}
	if r.turn.Text != "" {
		parts = append(parts, wire.GeminiPart{Text: r.turn.Text})
	}
	for k, call := range r.calls {
		if !json.Valid([]byte(call.arguments)) { // the service says so instead of passing it on
			finish = "MALFORMED_FUNCTION_CALL"
			continue
		}
		parts = append(parts, wire.GeminiPart{
			ThoughtSignature: signature,
			FunctionCall: &wire.GeminiFunctionCall{
				ID:   r.callID("call", k),
				Name: call.flatName(),
				Args: json.RawMessage(call.arguments),
			},
		})
	}
	response := wire.GeminiResponse{
		Candidates: []wire.GeminiCandidate{{
			Content:      wire.GeminiContent{Role: "model", Parts: parts},
			FinishReason: finish,
		}},
		UsageMetadata: &wire.GeminiUsage{
			PromptTokenCount:        prompt,
			CandidatesTokenCount:    max(0, u.OutputTokens-u.ReasoningTokens),
			ThoughtsTokenCount:      u.ReasoningTokens,
			CachedContentTokenCount: u.CacheReadTokens,
			TotalTokenCount:         prompt + u.OutputTokens,
		},
		ModelVersion: r.conv.model,
		ResponseID:   r.id("resp"),
	}
	return response, func() []wire.Event { return wire.GeminiEvents(response) }
}
