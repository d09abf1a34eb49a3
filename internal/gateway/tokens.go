package gateway

import (
	"encoding/json"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/session"
)

// maxFigure is more tokens than any call has: ten times the longest context.
const maxFigure = 20_000_000

// tokens holds what a reply has reported about tokens so far.
type tokens struct {
	said          session.TokenUsage // as the protocol counts
	input, output bool               // it said something about them
	wrong         bool               // one of its reports cannot be
}

// take adds a usage report. A figure that a later report leaves out has not changed, and no figure
// decreases: some servers repeat in the last report those of the first as zeros.
func (t *tokens) take(protocol wire.Protocol, raw json.RawMessage) {
	report, err := protocol.Usage(raw)
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
	t.input = t.input || holds(named[protocol.Info().InputName])
	t.output = t.output || holds(named[protocol.Info().OutputName])
}

// usage returns what the reply has reported so far about tokens; nil if it reported nothing, or
// something impossible: a model always reads something.
func (o *observer) usage() *session.TokenUsage {
	t := &o.tokens
	if !t.input || !t.output || t.wrong {
		return nil
	}
	said := o.protocol.Info().Net(t.said)
	if said.Prompt() == 0 {
		return nil
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
