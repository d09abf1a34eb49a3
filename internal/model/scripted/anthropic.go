package scripted

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/model/wire"
)

// readAnthropic reads a Messages request.
func readAnthropic(body []byte, _ wire.Route) (conversation, error) {
	var req wire.AnthropicRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return conversation{}, fmt.Errorf("this is not a Messages request: %w", err)
	}
	c := conversation{model: req.Model, stream: req.Stream, system: anthropicText(req.System)}
	for _, t := range req.Tools {
		c.tools = append(c.tools, offeredTool{name: t.Name, kind: "function", input: schemaFields(t.InputSchema)})
	}
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			for _, b := range m.Content {
				c.reply(b.Text, b.ID)
			}
			continue
		}
		c.readAnthropicUser(m)
	}
	return c, nil
}

// readAnthropicUser reads a user message. Text beside tool results is the client's own remark on
// them.
func (c *conversation) readAnthropicUser(m wire.AnthropicTurn) {
	var texts []string
	results := 0
	for _, b := range m.Content {
		switch b.Type {
		case "tool_result":
			c.result(anthropicText(b.Content))
			results++
		case "text":
			texts = append(texts, b.Text)
		}
	}
	if results == 0 {
		if m.Role == "user" {
			c.prompt(texts)
		} else { // newer clients put system messages into the conversation
			c.system += "\n" + strings.Join(texts, "\n")
			c.steps = append(c.steps, step{kind: stepOther})
		}
	}
}

func anthropicText(content wire.AnthropicContent) string {
	var texts []string
	for _, b := range content {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

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
