package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/fit-eval/fit/internal/model/wire"
)

// geminiRequest reports whether a request is of Gemini's protocol, whose path has what others have
// in the body.
func geminiRequest(r *http.Request, path string) (protocol, bool) {
	model, method, ok := wire.GeminiPath(path)
	if !ok || r.Method != http.MethodPost {
		return protocol{}, false
	}
	return protocol{
		name: "gemini",
		read: func(body []byte) (conversation, error) {
			return readGemini(body, model, method == wire.GeminiStream && r.URL.Query().Get("alt") == "sse")
		},
		render:     renderGemini,
		errorBody:  wire.GeminiErrorBody,
		errorEvent: func(_ reply, e wire.APIError) wire.Event { return wire.GeminiErrorEvent(e) },
	}, true
}

// gemini answers a call of one of a model's methods.
func (s *server) gemini(w *countingWriter, r *http.Request, x exchange) {
	_, path := splitPath(r.URL.Path)
	switch _, method, _ := wire.GeminiPath(path); method {
	case wire.GeminiGenerate, wire.GeminiStream:
		s.answer(w, r, x)
	case wire.GeminiCountTokens:
		writeJSON(w, http.StatusOK, fmt.Appendf(nil, `{"totalTokens":%d}`, max(1, len(x.body)/4)))
	default:
		x.record.Error = "there is nothing at " + r.Method + " " + r.URL.Path
		writeJSON(w, http.StatusNotFound,
			wire.GeminiErrorBody(http.StatusNotFound, wire.APIError{Message: x.record.Error}))
	}
}

// readGemini reads a generateContent request.
func readGemini(body []byte, model string, stream bool) (conversation, error) {
	var req wire.GeminiRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return conversation{}, fmt.Errorf("this is not a generateContent request: %w", err)
	}
	c := conversation{model: model, stream: stream}
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
