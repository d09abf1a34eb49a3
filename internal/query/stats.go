package query

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/session"
)

// Stats is the token accounting of a trace.
type Stats struct {
	Totals     Totals      `json:"totals"`
	PerTurn    []UsageRow  `json:"perTurn"`
	ModelUsage *ModelUsage `json:"modelUsage"`
	Divergence *Divergence `json:"divergence"`
}

// Where the figures of a Stats come from.
const (
	fromResults         = "result-event-sum"
	fromMessages        = "per-message-fallback"
	fromDocument        = "carried-document-summary"
	populationMessage   = "api-message"
	populationTurn      = "carried-document-per-turn"
	durationIsCumulated = "cumulative invocation time"
)

// Totals are the tokens, the cost and the time of all agents. Which fields there are depends on
// where the figures come from.
type Totals struct {
	session.TokenUsage
	// TotalCostUSD is nil if it is unknown, which is not the same as free.
	TotalCostUSD     *float64
	DurationMs       *int64
	ResultEventTurns *int64
	Population       string
}

// MarshalJSON writes the fields that belong to the population.
func (t Totals) MarshalJSON() ([]byte, error) {
	used := UsageJSON(t.TokenUsage)
	switch t.Population {
	case fromDocument:
		return json.Marshal(struct {
			UsageJSON
			Cost       *float64 `json:"totalCostUsd"`
			DurationMs *int64   `json:"durationMs"`
			Population string   `json:"population"`
		}{used, t.TotalCostUSD, t.DurationMs, t.Population})
	case fromResults:
		return json.Marshal(struct {
			UsageJSON
			Cost          *float64 `json:"totalCostUsd"`
			DurationMs    *int64   `json:"durationMs"`
			DurationLabel string   `json:"durationLabel"`
			Turns         *int64   `json:"resultEventTurns"`
			Population    string   `json:"population"`
			Present       bool     `json:"resultEventsPresent"`
		}{used, t.TotalCostUSD, t.DurationMs, durationIsCumulated, t.ResultEventTurns, t.Population, true})
	default:
		return json.Marshal(struct {
			UsageJSON
			Snapshot   bool     `json:"outputIsStreamingSnapshot"`
			Cost       *float64 `json:"totalCostUsd"`
			DurationMs *int64   `json:"durationMs"`
			Turns      *int64   `json:"resultEventTurns"`
			Population string   `json:"population"`
			Present    bool     `json:"resultEventsPresent"`
		}{used, true, t.TotalCostUSD, t.DurationMs, t.ResultEventTurns, t.Population, t.ResultEventTurns != nil})
	}
}

// UsageRow is the usage of one message of the model, or of one entry of an old document.
type UsageRow struct {
	MessageID *string
	Index     int // of the first entry
	session.TokenUsage
	Population string
	Source     *string
}

// MarshalJSON writes the row in the shape of its population.
func (r UsageRow) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// AppendJSON appends what MarshalJSON writes, on one line and in the form that this package prints.
func (r UsageRow) AppendJSON(dst []byte) []byte {
	if r.Population == populationTurn {
		dst = strconv.AppendInt(append(dst, `{"index":`...), int64(r.Index), 10)
		dst = appendCounters(append(dst, ','), r.TokenUsage)
		return append(appendField(dst, "population", r.Population), '}')
	}
	dst = append(dst, `{"messageId":`...)
	if r.MessageID == nil {
		dst = append(dst, "null"...)
	} else {
		dst = jsonenc.AppendString(dst, *r.MessageID)
	}
	dst = appendCounters(append(dst, ','), r.TokenUsage)
	dst = append(dst, `,"outputIsStreamingSnapshot":true`...)
	dst = appendField(dst, "population", r.Population)
	return append(appendOptional(dst, "source", r.Source), '}')
}

// Divergence says that messages and results disagree. Output is never compared: streams report only
// a snapshot of it.
type Divergence struct {
	Field          string `json:"field"`
	PerMessageSum  int64  `json:"perMessageSum"`
	ResultEventSum int64  `json:"resultEventSum"`
}

// usageBook groups the usage of assistant entries by message; for old documents, by entry.
type usageBook struct {
	ordered[UsageRow]
	old bool
}

func (b *usageBook) add(e *Cursor) {
	id, usage, ok := e.Usage()
	if !ok {
		return
	}
	if b.old {
		b.rows = append(b.rows, UsageRow{Index: e.Index, TokenUsage: usage, Population: populationTurn})
		return
	}
	row, isNew := b.row(id)
	if !isNew {
		row.TokenUsage = row.Max(usage)
		return
	}
	*row = UsageRow{
		MessageID:  id,
		Index:      e.Index,
		TokenUsage: usage,
		Population: populationMessage,
		Source:     e.Lane(),
	}
}

func (b *usageBook) sum() session.TokenUsage {
	var sum session.TokenUsage
	for i := range b.rows {
		sum.Add(b.rows[i].TokenUsage)
	}
	return sum
}

// Stats adds up tokens, cost and time.
func (t *Trace) Stats(ctx context.Context) (*Stats, *Info, error) {
	book := t.newUsageBook()
	info, err := t.walk(ctx, plan{
		accounts: true,
		visit:    func(e *Cursor) error { book.add(e); return nil },
	})
	if err != nil {
		return nil, nil, err
	}
	return newStats(info, book), info, nil
}

// newUsageBook is for the entries of the trace. An old document is from before usage was counted by
// message.
func (t *Trace) newUsageBook() *usageBook {
	return &usageBook{
		ordered: ordered[UsageRow]{rows: []UsageRow{}},
		old:     t.doc != nil && preChange(t.doc.Version),
	}
}

func newStats(info *Info, book *usageBook) *Stats {
	sum := info.Summary
	s := &Stats{PerTurn: book.rows, ModelUsage: sum.ModelUsage}
	switch {
	case book.old:
		s.Totals = Totals{
			TotalCostUSD: cmp.Or(sum.TotalCostUSD, new(float64)),
			DurationMs:   &sum.DurationMs,
			Population:   fromDocument,
		}
		if sum.TokenUsage != nil {
			s.Totals.TokenUsage = session.TokenUsage(*sum.TokenUsage)
		}
	case sum.TokenUsage != nil:
		s.Totals = Totals{
			TokenUsage:       session.TokenUsage(*sum.TokenUsage),
			TotalCostUSD:     sum.TotalCostUSD,
			DurationMs:       &sum.DurationMs,
			ResultEventTurns: &sum.NumTurns,
			Population:       fromResults,
		}
		s.Divergence = divergence(book.sum(), s.Totals.TokenUsage)
	default:
		s.Totals = Totals{TokenUsage: info.used, TotalCostUSD: sum.TotalCostUSD, Population: fromMessages}
		if s.Totals.Total() == 0 { // documents, and results that report the cost alone
			s.Totals.TokenUsage = book.sum()
		}
		if info.Results { // they still have the time and the turns
			s.Totals.DurationMs, s.Totals.ResultEventTurns = &sum.DurationMs, &sum.NumTurns
		}
	}
	return s
}

func divergence(messages, results session.TokenUsage) *Divergence {
	if messages == (session.TokenUsage{}) {
		return nil // no message said anything
	}
	for _, field := range []struct {
		name string
		m, r int64
	}{
		{"inputTokens", messages.InputTokens, results.InputTokens},
		{"cacheReadInputTokens", messages.CacheReadTokens, results.CacheReadTokens},
		{"cacheCreationInputTokens", messages.CacheWriteTokens, results.CacheWriteTokens},
	} {
		if field.m != field.r {
			return &Divergence{field.name, field.m, field.r}
		}
	}
	return nil
}
