package gateway

import (
	"encoding/json"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/model/wire"
)

// The figures of a report of usage, as the protocols have them.
const (
	inputFigure = iota // with the cached tokens, in the protocols of OpenAI
	outputFigure
	cacheReadFigure
	cacheWriteFigure // with those that are kept for long
	cacheLongFigure
	reasoningFigure
	figures
)

// maxFigure is more tokens than any call has. Sums of such figures do not overflow.
const maxFigure = 1 << 40

// tokens holds what a reply has reported about tokens so far.
type tokens struct {
	said          [figures]int64
	input, output bool // it said something about them
	wrong         bool // one of its reports cannot be
}

// take adds a usage report. A figure that a later report leaves out has not changed, and no figure
// decreases: some servers repeat in the last report those of the first as zeros.
func (t *tokens) take(protocol string, raw json.RawMessage) {
	report, err := reported(protocol, raw)
	if err != nil {
		t.wrong = true
		return
	}
	for i, figure := range report {
		t.wrong = t.wrong || figure < 0 || figure > maxFigure
		t.said[i] = max(t.said[i], figure)
	}
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
func reported(protocol string, raw json.RawMessage) (report [figures]int64, err error) {
	switch protocol {
	case Anthropic:
		var u wire.AnthropicUsage
		err = json.Unmarshal(raw, &u)
		report = [figures]int64{u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens}
		if u.CacheCreation != nil {
			report[cacheLongFigure] = u.CacheCreation.Ephemeral1h
		}
	case Responses:
		var u wire.ResponsesUsage
		err = json.Unmarshal(raw, &u)
		report = openAIReport(u.InputTokens, u.OutputTokens, u.InputTokensDetails, u.OutputTokensDetails)
	case Gemini:
		var u wire.GeminiUsage
		err = json.Unmarshal(raw, &u)
		report = [figures]int64{
			inputFigure:     u.PromptTokenCount,
			outputFigure:    u.CandidatesTokenCount + u.ThoughtsTokenCount,
			cacheReadFigure: u.CachedContentTokenCount,
			reasoningFigure: u.ThoughtsTokenCount,
		}
	default:
		var u wire.ChatUsage
		err = json.Unmarshal(raw, &u)
		report = openAIReport(u.PromptTokens, u.CompletionTokens, u.PromptTokensDetails, u.CompletionTokensDetails)
	}
	return report, err
}

func openAIReport(input, output int64, in wire.ResponsesInputDetail, out wire.ResponsesOutputDetail) [figures]int64 {
	return [figures]int64{
		inputFigure:      input,
		outputFigure:     output,
		cacheReadFigure:  in.CachedTokens,
		cacheWriteFigure: in.CacheWriteTokens,
		reasoningFigure:  out.ReasoningTokens,
	}
}

// usage returns what the reply has reported so far about tokens; nil if it reported nothing, or
// something impossible.
func (o *observer) usage() *calls.Usage {
	t := &o.tokens
	if !t.input || !t.output || t.wrong {
		return nil
	}
	said := &calls.Usage{
		Input:        t.said[inputFigure],
		Output:       t.said[outputFigure],
		CacheRead:    t.said[cacheReadFigure],
		CacheWrite1h: min(t.said[cacheLongFigure], t.said[cacheWriteFigure]),
		Reasoning:    t.said[reasoningFigure],
	}
	said.CacheWrite5m = t.said[cacheWriteFigure] - said.CacheWrite1h
	if o.protocol != Anthropic { // the others count them as input too
		said.Input = max(0, said.Input-said.CacheRead-said.CacheWrite5m)
	}
	return said
}

// soFar returns the usage of a reply that may be incomplete. What it reported at its beginning
// about its output is out of date.
func (o *observer) soFar() *calls.Usage {
	said := o.usage()
	if said == nil || o.complete {
		return said
	}
	said.Output, said.Partial = max(said.Output, o.seen()), true
	return said
}
