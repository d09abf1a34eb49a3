package harness

import (
	"encoding/json"
	"fmt"
)

// rfcPrefix begins the correlation ids of requests for comment.
const rfcPrefix = "rfc_"

func (c *call) requestForComment() ToolResult {
	var args struct {
		Channel    string   `json:"channel"`
		Body       string   `json:"body"`
		Addressees []string `json:"addressees"`
	}
	if err := c.decode(&args); err != nil {
		return failure(err)
	}
	channel, err := c.text("channel", args.Channel)
	if err != nil {
		return failure(err)
	}
	body, err := c.text("body", args.Body)
	if err != nil {
		return failure(err)
	}
	addressees := make([]string, 0, len(args.Addressees))
	for _, name := range args.Addressees {
		clean, err := c.text("addressees", name)
		if err != nil {
			return failure(err)
		}
		addressees = append(addressees, clean)
	}
	return c.locked(func(s *state) ToolResult {
		id := fmt.Sprintf("%s%d", rfcPrefix, s.lastRFC+1)
		c.hub.commit(rfcEvent{
			Type:          typeRFC,
			Agent:         c.member.name,
			CorrelationID: id,
			Channel:       channel,
			Body:          body,
			Addressees:    addressees,
			Call:          c.id,
		})
		return requested(id, channel)
	})
}

func requested(id, channel string) ToolResult {
	text, _ := json.Marshal(struct { // strings always marshal
		CorrelationID string `json:"correlation_id"`
		Channel       string `json:"channel,omitempty"`
	}{id, channel})
	return ToolResult{Text: string(text)}
}

func (c *call) acknowledge() ToolResult {
	message, _, err := c.message()
	if err != nil {
		return failure(err)
	}
	return c.locked(func(*state) ToolResult {
		c.hub.reply(&replyEvent{
			Type:  typeReply,
			Kind:  ReplyAck,
			Agent: c.member.name,
			Body:  message,
			Call:  c.id,
		})
		return ToolResult{Text: "Posted to the thread. It does not count as an answer to an ask."}
	})
}

// reply records a post to the thread and puts it in the outbox, which hands it on once its line is
// in the trace.
func (h *hub) reply(e *replyEvent) {
	h.commit(e)
	h.outbox.put(h.state.replies[len(h.state.replies)-1])
}
