package gateway

import (
	"encoding/json"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/session"
)

// maxFigure is more tokens than any call has. Sums of such figures do not overflow.
const maxFigure = 1 << 40

// tokens holds what a reply has reported about tokens so far.
type tokens struct {
	said          session.TokenUsage // as the protocol counts: all but Anthropic's with cached tokens as input
	input, output bool               // it said something about them
	wrong         bool               // one of its reports cannot be
}

// take adds a usage report. A figure that a later report leaves out has not changed, and no figure
// decreases: some servers repeat in the last report those of the first as zeros.
func (t *tokens) take(protocol string, raw json.RawMessage) {
	report, err := reported(protocol, raw)
	if err != nil {
		t.wrong = true
		return
	}
	for _, figure := range []int64{
		report.InputTokens, report.OutputTokens, report.CacheReadTokens, report.CacheWriteTokens,
		report.CacheWriteLongTokens, report.ReasoningTokens,
	} {
		t.wrong = t.wrong || figure < 0 || figure > maxFigure
	}
	t.said = t.said.Max(report)
	var named map[string]json.RawMessage
	_ = json.Unmarshal(raw, &named) // it was read before
	names := [2]string{"input_tokens", "output_tokens"}
	switch protocol {
	case Chat:
		names = [2]string{"prompt_tokens", "completion_tokens"}
	case Gemini: // which leaves out what is zero
		names = [2]string{"promptTokenCount", "totalTokenCount"}
	}
	t.input = t.input || holds(named[names[0]])
	t.output = t.output || holds(named[names[1]])
}

// reported reads a report of usage.
func reported(protocol string, raw json.RawMessage) (report session.TokenUsage, err error) {
	switch protocol {
	case Anthropic:
		var u wire.AnthropicUsage
		err = json.Unmarshal(raw, &u)
		report = session.TokenUsage{
			InputTokens:      u.InputTokens,
			OutputTokens:     u.OutputTokens,
			CacheReadTokens:  u.CacheReadInputTokens,
			CacheWriteTokens: u.CacheCreationInputTokens,
		}
		if u.CacheCreation != nil {
			report.CacheWriteLongTokens = u.CacheCreation.Ephemeral1h
		}
	case Responses:
		var u wire.ResponsesUsage
		err = json.Unmarshal(raw, &u)
		report = openAIReport(u.InputTokens, u.OutputTokens, u.InputTokensDetails, u.OutputTokensDetails)
	case Gemini:
		var u wire.GeminiUsage
		err = json.Unmarshal(raw, &u)
		report = session.TokenUsage{
			InputTokens:     u.PromptTokenCount,
			OutputTokens:    u.CandidatesTokenCount + u.ThoughtsTokenCount,
			CacheReadTokens: u.CachedContentTokenCount,
			ReasoningTokens: u.ThoughtsTokenCount,
		}
	default:
		var u wire.ChatUsage
		err = json.Unmarshal(raw, &u)
		report = openAIReport(u.PromptTokens, u.CompletionTokens, u.PromptTokensDetails, u.CompletionTokensDetails)
	}
	return report, err
}

func openAIReport(
	input, output int64, in wire.ResponsesInputDetail, out wire.ResponsesOutputDetail,
) session.TokenUsage {
	return session.TokenUsage{
		InputTokens:      input,
		OutputTokens:     output,
		CacheReadTokens:  in.CachedTokens,
		CacheWriteTokens: in.CacheWriteTokens,
		ReasoningTokens:  out.ReasoningTokens,
	}
}

// usage returns what the reply has reported so far about tokens; nil if it reported nothing, or
// something impossible.
func (o *observer) usage() *session.TokenUsage {
	t := &o.tokens
	if !t.input || !t.output || t.wrong {
		return nil
	}
	said := t.said
	said.CacheWriteLongTokens = min(said.CacheWriteLongTokens, said.CacheWriteTokens)
	if o.protocol != Anthropic { // the others count them as input too
		said.InputTokens = max(0, said.InputTokens-said.CacheReadTokens-said.CacheWriteTokens)
	}
	return &said
}

// soFar returns the usage of a reply that may be incomplete. What it reported at its beginning
// about its output is out of date.
func (o *observer) soFar() *session.TokenUsage {
	said := o.usage()
	if said == nil || o.complete {
		return said
	}
	said.OutputTokens, said.Partial = max(said.OutputTokens, o.seen()), true
	return said
}
