package scripted

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/model/wire"
)

// readResponses reads a Responses request.
func readResponses(body []byte, _ wire.Route) (conversation, error) {
	var req wire.ResponsesRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return conversation{}, fmt.Errorf("this is not a Responses request: %w", err)
	}
	c := conversation{model: req.Model, stream: req.Stream, system: req.Instructions}
	c.offer("", req.Tools)
	for _, item := range req.Input {
		switch {
		case item.IsAssistant():
			c.reply(item.Content.Text(), item.CallID)
		case item.Type == "additional_tools":
			c.offer("", item.Tools)
		case strings.HasSuffix(item.Type, "_output"):
			c.result(item.Output.Text())
		case item.Role == "developer" || item.Role == "system":
			c.system += "\n" + item.Content.Text()
		case item.Role == "user":
			c.prompt(partTexts(item.Content))
		}
	}
	return c, nil
}

// maxNamespaceDepth stops at namespaces in namespaces in namespaces.
const maxNamespaceDepth = 8

func (c *conversation) offer(namespace string, tools []wire.ResponsesTool) {
	c.offerDepth(namespace, tools, maxNamespaceDepth)
}

func (c *conversation) offerDepth(namespace string, tools []wire.ResponsesTool, depth int) {
	for _, t := range tools {
		switch {
		case t.Type == "namespace" && depth > 0:
			c.offerDepth(t.Name, t.Tools, depth-1)
		case t.Name == "":
			c.tools = append(c.tools, offeredTool{name: t.Type, kind: t.Type, namespace: namespace})
		default:
			offered := offeredTool{
				name:      t.Name,
				kind:      t.Type,
				namespace: namespace,
				input:     schemaFields(t.Parameters),
			}
			c.tools = append(c.tools, offered)
			if t.Type == "custom" {
				c.tools = append(c.tools, offered.declared(t.Description)...)
			}
		}
	}
}

func partTexts(content wire.OpenAIContent) []string {
	var texts []string
	for _, p := range content {
		texts = append(texts, p.Text)
	}
	return texts
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
