package gateway

import (
	"time"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// Estimate is a call that is about to start.
type Estimate struct {
	Model    string
	Protocol string
	Body     []byte // of the request
	// Bytes and Output stand for the body of a request that is not streamed, and so cannot be
	// stopped in the middle: how long it is, and how many tokens the reply may have.
	Bytes  int
	Output int64
	Paid   bool // a model answers; other calls cost nothing
}

// What is known about the size of calls. Code and JSON have 3 to 5 bytes in a token; hardly any
// text has fewer than 2.
const (
	fewestBytesPerToken = 2
	bytesPerToken       = calls.BytesPerToken
	mostBytesPerToken   = 8
	// defaultOutput is for requests that leave the length of the reply to the server: as much as
	// models give.
	defaultOutput = 128_000
	// envelope is for what a request has beside its texts.
	envelope = 100
	// fromServer is for requests to which the server adds its own input: as much as models take.
	fromServer = 400_000
	// mostReplies is the most replies that vendors give to one request.
	mostReplies = 128
	// Bytes of a stream for each token of a reply, with the JSON around it: Anthropic puts several
	// tokens into an event, the others one.
	streamedAnthropic = 32
	streamedOther     = 200
)

// size returns the tokens of a request, rather too many than too few, and those that it allows for
// the reply.
func (e Estimate) size() (input, output int64) {
	if e.Output > 0 {
		return int64(e.Bytes/fewestBytesPerToken) + envelope, e.Output
	}
	input, output = int64(len(e.Body)/fewestBytesPerToken)+1, defaultOutput
	v, _ := jsontape.Parse(e.Body)
	for _, field := range []string{"previous_response_id", "conversation", "prompt"} {
		if stored := v.Get(field); stored.Exists() && stored.Kind() != jsontape.Null {
			input += fromServer
			break
		}
	}
	for _, field := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if limit := v.Get(field).Int64(); limit > 0 {
			output = min(limit, unbounded)
		}
	}
	for _, path := range [][]string{
		{"generationConfig", "maxOutputTokens"}, {"generation_config", "max_output_tokens"},
	} {
		if limit := v.Path(path...).Int64(); limit > 0 {
			output = min(limit, unbounded)
		}
	}
	for _, path := range [][]string{
		{"n"}, {"generationConfig", "candidateCount"}, {"generation_config", "candidate_count"},
	} {
		if replies := v.Path(path...).Int64(); replies > 1 {
			output = min(output, unbounded/mostReplies) * min(replies, mostReplies)
		}
	}
	return input, output
}

// cost returns what tokens cost, and whether that is known.
func (t *accountTree) cost(model string, usage session.TokenUsage) (nano int64, known bool) {
	if t.prices == nil {
		return 0, false
	}
	usage.TotalTokens = usage.Total()
	usd, known := t.prices(model, usage, time.Now().UnixMilli())
	return nanos(usd), known
}

// bounds returns what a call consumes if it is as large as it may be and its input is written to a
// cache, which costs more than other input, and what it consumes if it is small and its input is
// read from a cache.
func (t *accountTree) bounds(e Estimate) (most, least amount, priced bool) {
	input, output := e.size()
	small := input * fewestBytesPerToken / mostBytesPerToken
	most.tokens, least.tokens = input+output, small
	if most.nano, priced = t.cost(e.Model, session.TokenUsage{InputTokens: input, OutputTokens: output}); !priced {
		return most, least, false
	}
	for _, dear := range []session.TokenUsage{
		{CacheWriteTokens: input, OutputTokens: output},
		{CacheWriteTokens: input, CacheWriteLongTokens: input, OutputTokens: output},
	} {
		nano, _ := t.cost(e.Model, dear)
		most.nano = max(most.nano, nano)
	}
	cheap, known := t.cost(e.Model, session.TokenUsage{CacheReadTokens: small})
	if !known {
		cheap, _ = t.cost(e.Model, session.TokenUsage{InputTokens: small})
	}
	least.nano = cheap
	if e.Output > 0 {
		least = most
	}
	return most, least, true
}

// soFar completes the reported usage of a running call: most providers report the number of tokens
// only at the end.
func (r *Reservation) soFar(usage session.TokenUsage, streamed int64) session.TokenUsage {
	if usage.Total() == usage.OutputTokens {
		usage.InputTokens = int64(r.request / (2 * fewestBytesPerToken))
	}
	usage.OutputTokens = max(usage.OutputTokens, streamed/r.bytesPerToken)
	return usage
}
