package query

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
)

// Summary holds the totals of a trace. Turns, tokens and cost are those that package session
// counts.
type Summary struct {
	Result  string `json:"result"`
	IsError bool   `json:"isError"`
	// TotalCostUSD is nil if the price of some tokens is unknown, or nothing was used.
	TotalCostUSD *float64    `json:"totalCostUsd"`
	DurationMs   int64       `json:"durationMs"`
	NumTurns     int64       `json:"numTurns"` // as the agents' result events claim
	TokenUsage   *UsageJSON  `json:"tokenUsage"`
	ModelUsage   *ModelUsage `json:"modelUsage"`
}

// account counts the turns, tokens and cost of a lane of the stream dialect. It passes what matters
// for them to session and leaves out the results of tools, which are the bulk of a trace.
type account struct {
	fold    *session.Fold
	decoder session.Decoder
}

func newAccount(l *laneState, prices session.Prices) *account {
	a := &account{
		fold:    session.NewFold(session.Options{Flat: true, Prices: prices}),
		decoder: session.StreamDialect("").New(),
	}
	a.fold.Identify(session.Identity{Model: l.Model})
	return a
}

func (a *account) event(l *laneState, ev *scan.Event) {
	at := session.Stamp{Line: ev.Line, Ts: ev.Ts, Lane: l.Lane}
	switch ev.Kind {
	case scan.Assistant, scan.Result:
		a.decoder.Decode(ev.Native, at, a.fold)
	case scan.System:
		if string(ev.Subtype) == "init" {
			a.decoder.Decode(ev.Native, at, a.fold)
		}
	case scan.User:
		a.fold.Message(session.Origin{Stamp: at, Parent: string(ev.Parent)}, "user", "", "")
	case scan.Other, scan.Lifecycle:
	}
}

// result notes what a result event says beside tokens and cost.
func (in *Info) result(v jsontape.Value) {
	s := &in.Summary
	in.Results = true
	s.Result = cmp.Or(unescape(v.Get("subtype").Inner()), unknownResult)
	s.IsError = s.IsError || v.Get("is_error").Bool()
	s.DurationMs += v.Get("duration_ms").Int64()
	s.NumTurns += v.Get("num_turns").Int64()
	in.usageReported = in.usageReported || v.Get("usage").Kind() == jsontape.Object
	for model, usage := range v.Get("modelUsage").Members() {
		in.models.note(model, usage)
	}
}

const unknownResult = "unknown"

// add adds the session of one lane.
func (in *Info) add(l *laneState, s *session.EnrichedSession) {
	in.Turns += s.Turns
	if s.Usage.TotalTokens == 0 && s.Usage.CostUSD == nil {
		return
	}
	in.used = in.used.Plus(s.Usage)
	l.byWire = s.Usage.CostSource == session.CostWire
	if l.byWire && s.ReportedUsage != nil {
		l.word = s.ReportedUsage.CostUSD
	}
	in.original = addOptional(in.original, s.OriginalCostUSD)
	if l.CostUSD = s.Usage.CostUSD; l.CostUSD == nil {
		in.unpriced = append(in.unpriced, l.Lane)
	}
	in.models.add(s.ModelUsage)
}

// settle completes the summary once every lane was added.
func (in *Info) settle() {
	s := &in.Summary
	s.Result = cmp.Or(s.Result, unknownResult)
	s.TotalCostUSD = in.used.CostUSD
	if in.usageReported {
		s.TokenUsage = new(UsageJSON(in.used))
	}
	if len(in.models.models) > 0 {
		s.ModelUsage = &in.models
	}
}

// ModelUsage is usage by model, in the order in which results named the models.
type ModelUsage struct{ models []modelUsage }

type modelUsage struct {
	name   string
	usage  session.TokenUsage
	extras []extra
}

// extra is a figure about a model that session does not count, such as the size of its context
// window; the first value counts.
type extra struct {
	key   string
	value json.RawMessage
}

// counted are the members of a model's usage that session adds up.
var counted = []string{"inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "costUSD"}

func (u *ModelUsage) model(name string) *modelUsage {
	for i := range u.models {
		if u.models[i].name == name {
			return &u.models[i]
		}
	}
	u.models = append(u.models, modelUsage{name: strings.Clone(name)})
	return &u.models[len(u.models)-1]
}

func (u *ModelUsage) note(name string, usage jsontape.Value) {
	m := u.model(name)
	for key, value := range usage.Members() {
		known := func(e extra) bool { return e.key == key }
		if !slices.Contains(counted, key) && !slices.ContainsFunc(m.extras, known) {
			m.extras = append(m.extras, extra{strings.Clone(key), jsonenc.Compact(value.Raw())})
		}
	}
}

func (u *ModelUsage) add(usage map[string]session.TokenUsage) {
	for _, name := range slices.Sorted(maps.Keys(usage)) {
		m := u.model(cmp.Or(name, unknownResult))
		m.usage = m.usage.Plus(usage[name])
	}
}

// MarshalJSON writes the models in order.
func (u *ModelUsage) MarshalJSON() ([]byte, error) {
	dst := []byte{'{'}
	for i, m := range u.models {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCounters(append(jsonenc.AppendString(dst, m.name), ':', '{'), m.usage)
		if m.usage.CostUSD != nil {
			dst = jsonenc.AppendNumber(append(dst, `,"costUSD":`...), *m.usage.CostUSD)
		}
		for _, e := range m.extras {
			dst = append(appendKey(dst, e.key), e.value...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (u *ModelUsage) UnmarshalJSON(raw []byte) error {
	var parser jsontape.Parser
	v, _ := parser.Parse(raw)
	for _, model := range jsonenc.Members(v) {
		m := u.model(model.Key)
		m.usage = session.TokenUsage{
			InputTokens:      model.Value.Get("inputTokens").Int64(),
			OutputTokens:     model.Value.Get("outputTokens").Int64(),
			CacheReadTokens:  model.Value.Get("cacheReadInputTokens").Int64(),
			CacheWriteTokens: model.Value.Get("cacheCreationInputTokens").Int64(),
		}
		if cost := model.Value.Get("costUSD"); cost.Kind() == jsontape.Number {
			m.usage.CostUSD = new(cost.Float64())
		}
		u.note(model.Key, model.Value)
	}
	return nil
}
