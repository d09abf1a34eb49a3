package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/session"
)

const (
	// maxFigure is more tokens than any call has: ten times the longest context.
	maxFigure = 20_000_000
	// impossibleBytes is more text than any token stands for.
	impossibleBytes = 256
	// longestWord bounds what counts of a word: a picture is one, and has fewer tokens than text.
	longestWord = 64
)

// tokens holds what a reply has reported about tokens so far.
type tokens struct {
	said          session.TokenUsage // as the protocol counts
	input, output bool               // it said something about them
	began         bool               // what it said about its output was said at its beginning
	wrong         string             // why one of its reports cannot be
}

// take adds a usage report. A figure that a later report leaves out has not changed, and no figure
// decreases: some servers repeat in the last report those of the first as zeros.
func (t *tokens) take(protocol wire.Protocol, raw json.RawMessage, beginning bool) {
	report, err := protocol.Usage(raw)
	if err != nil {
		t.wrong = "usage that cannot be read"
		return
	}
	for _, figure := range []int64{
		report.InputTokens, report.OutputTokens, report.CacheReadTokens, report.CacheWriteTokens,
		report.CacheWriteLongTokens, report.ReasoningTokens,
	} {
		if figure < 0 || figure > maxFigure {
			t.wrong = fmt.Sprintf("%d tokens", figure)
		}
	}
	t.said = t.said.Max(report)
	input, output := protocol.Info().Says(raw)
	t.input, t.output = t.input || input, t.output || output
	if output {
		t.began = beginning
	}
}

// usage returns what the reply has reported so far about tokens; nil if it reported nothing, or
// something impossible: a model always reads something. What a complete reply said about its output
// at its beginning alone is nothing.
func (o *observer) usage() *session.TokenUsage {
	t := &o.tokens
	said := o.protocol.Info().Net(t.said)
	if !t.input || !t.output || o.complete && t.began || o.impossible(said) != "" {
		return nil
	}
	return &said
}

// impossible says what is wrong with what the reply has reported so far.
func (o *observer) impossible(said session.TokenUsage) string {
	switch {
	case o.tokens.wrong != "":
		return o.tokens.wrong
	case o.tokens.input && said.Prompt() == 0:
		return "0 tokens of a prompt"
	case o.tokens.output && o.complete && said.OutputTokens == 0 && (o.seen() > 0 || !o.stream && o.failure == ""):
		return "0 tokens for a reply"
	}
	return ""
}

// implausible says what is wrong with what the reply has reported, that it is more than its request
// allowed, or far less than the text in it. A server may ignore a limit, or parts of a request, so
// what it counted stands.
func (o *observer) implausible(request []byte) string {
	said := o.protocol.Info().Net(o.tokens.said)
	if wrong := o.impossible(said); wrong != "" {
		return wrong
	}
	if _, allowed := (Estimate{Body: request}).size(); said.OutputTokens > allowed {
		return fmt.Sprintf("%d tokens of output, where the request allowed %d", said.OutputTokens, allowed)
	}
	if text := textOf(request); o.tokens.input && said.Prompt() < int64(text/impossibleBytes) {
		return fmt.Sprintf("%d tokens of a prompt with %d bytes of text", said.Prompt(), text)
	}
	return ""
}

// textOf returns how many bytes of a request are text, rather too few than too many.
func textOf(request []byte) int {
	n := 0
	for word := range bytes.FieldsSeq(request) {
		n += min(len(word), longestWord)
	}
	return n
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
