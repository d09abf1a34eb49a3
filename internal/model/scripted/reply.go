package scripted

import (
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/price"
)

// protocol is one wire format as the server needs it.
type protocol struct {
	wire.Protocol
	// read understands a request.
	read func(body []byte, to wire.Route) (conversation, error)
	// render makes the whole reply and the events of the streamed one.
	render func(r reply) (whole any, events func() []wire.Event)
	// counted is the format of an answer to a question for the number of tokens.
	counted string
}

// protocols are those that the server speaks.
var protocols = []protocol{
	{wire.Anthropic, readAnthropic, renderAnthropic, `{"input_tokens":%d}`},
	{wire.Responses, readResponses, renderResponses, ""},
	{wire.Chat, readChat, renderChat, ""},
	{wire.Gemini, readGemini, renderGemini, `{"totalTokens":%d}`},
}

// errorEvent reports an error in the middle of a reply.
func (p protocol) errorEvent(r reply, e wire.APIError) wire.Event {
	if p.Protocol == wire.Responses { // whose event repeats the reply
		return wire.ResponsesErrorEvent(responsesReply(r), e)
	}
	return p.ErrorEvent(0, r.conv.model, e)
}

// reply is a turn that is about to be said.
type reply struct {
	pick
	conv  conversation
	calls []toolCall
	usage price.TokenUsage
}

// newReply settles what a turn leaves open.
func newReply(p pick, c conversation, s *Script) reply {
	r := reply{pick: p, conv: c, usage: price.TokenUsage(defaultUsage)}
	switch {
	case p.turn.Usage != nil:
		r.usage = price.TokenUsage(*p.turn.Usage)
	case s.Usage != nil:
		r.usage = price.TokenUsage(*s.Usage)
	}
	for _, call := range p.turn.Calls {
		r.calls = append(r.calls, c.resolve(call))
	}
	return r
}

// stop returns the stop reason in Anthropic's words.
func (r reply) stop() string {
	switch {
	case r.turn.Stop != "":
		return r.turn.Stop
	case len(r.calls) > 0:
		return "tool_use"
	default:
		return "end_turn"
	}
}

func (r reply) id(prefix string) string {
	return fmt.Sprintf("%s_%s_t%dv%d", prefix, r.conversation, r.index, r.visit)
}

// signature replaces the vendor's, which is opaque to clients.
const signature = "c2NyaXB0ZWQtbW9kZWw="

// created is the time every reply claims to be from: a reply must not depend on when it was asked
// for.
const created = 1767225600
