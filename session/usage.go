package session

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Prices returns the cost of tokens of a model at a time in epoch milliseconds, and false for an
// unknown model.
type Prices func(model string, usage TokenUsage, atMs int64) (usd float64, known bool)

// UsageRule says what the figures of a usage report mean. It differs between agents and between
// their versions, and a blind sum is wrong for most.
type UsageRule int

// The rules.
const (
	// UsageDelta is the consumption since the last report: reports are added up.
	UsageDelta UsageRule = iota
	// UsagePerMessage is the consumption of the message named by Key. Several reports about one
	// message replace each other.
	UsagePerMessage
	// UsageCumulative is all that the thread or process named by Key has consumed since it began:
	// only what is new since the last report counts. Figures that went down mean that the counter
	// started over.
	UsageCumulative
	// UsageProvisional is like UsagePerMessage, but only a first guess: it counts only if no report
	// of the other kinds comes after it.
	UsageProvisional
)

// UsageReport is one statement of a stream about tokens.
type UsageReport struct {
	Rule    UsageRule
	Key     string // the message, or the thread
	Model   string // empty: the session's model
	Tokens  TokenUsage
	CostUSD *float64 // as the agent reports it; nil if it does not
}

// The most that one report may count. More is a mistake, and sums of it would overflow.
const (
	maxTokens  = 1 << 40
	maxCostUSD = 1e9
)

// sound reports whether the figures of a report can be meant.
func (r *UsageReport) sound() bool {
	u := &r.Tokens
	for _, n := range [...]int64{
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CacheWriteLongTokens,
	} {
		if n < 0 || n > maxTokens {
			return false
		}
	}
	return r.CostUSD == nil || *r.CostUSD >= 0 && *r.CostUSD <= maxCostUSD
}

// usageBook adds up usage reports by their rules.
type usageBook struct {
	prices      Prices
	perModel    map[string]*modelTotal
	last        *modelTotal // of the last report's model, which most reports share
	lastModel   string
	messages    reportLog
	counters    reportLog
	provisional reportLog
	reports     int
}

type modelTotal struct {
	tokens    TokenUsage
	cost      float64
	computed  bool // some of the cost comes from the price table
	estimated bool // some of the cost is for provisional counts
	unpriced  bool // some tokens have no price
}

func newUsageBook(prices Prices) usageBook {
	return usageBook{prices: prices, perModel: map[string]*modelTotal{}}
}

// Usage records what a stream says about tokens, and emits a cost event for what is new in it. A
// report with an invalid figure is ignored: a part of it would be taken for the whole.
func (f *Fold) Usage(o Origin, report UsageReport) {
	if !report.sound() {
		f.ParseError()
		return
	}
	report.Model = cmp.Or(report.Model, f.session.Model)
	atMs, _ := f.time(o)
	increment, ok := f.usage.add(report, atMs)
	if !ok {
		return
	}
	if at := f.position(o); f.watched {
		f.emit(o, at, EnrichedEvent{Kind: KindCost, Label: report.Model, Usage: new(increment)})
	}
}

// Baseline sets the value of a cumulative counter before the stream began, for a conversation that
// is resumed.
func (f *Fold) Baseline(key string, tokens TokenUsage) {
	f.usage.counters.set(UsageReport{Key: key, Tokens: tokens})
}

// TotalUsage returns what was consumed so far, provisional figures included.
func (f *Fold) TotalUsage() TokenUsage {
	usage, _ := f.wire.prefer(f.usage.total())
	return usage
}

// UsageReports returns the number of usage reports in the stream, without provisional ones.
func (f *Fold) UsageReports() int { return f.usage.reports }

// add books a report and returns what it adds to the total.
func (b *usageBook) add(r UsageReport, atMs int64) (TokenUsage, bool) {
	if r.Rule == UsageProvisional {
		r.Tokens.TotalTokens = r.Tokens.Total()
		r.CostUSD, _ = b.price(r.Model, r.Tokens, r.CostUSD, atMs)
		b.guess(r)
		return TokenUsage{}, false
	}
	b.reports++
	b.provisional.forget()
	increment, cost := r.Tokens, r.CostUSD
	switch r.Rule {
	case UsagePerMessage:
		if before, seen := b.messages.set(r); seen {
			increment, cost = since(r, before)
		}
	case UsageCumulative:
		if before, seen := b.counters.set(r); seen && !decreased(r, before) {
			increment, cost = since(r, before)
		}
	case UsageDelta, UsageProvisional:
	}
	increment.Summed = r.Rule != UsagePerMessage
	return b.book(r.Model, increment, cost, atMs)
}

// guess books a provisional report. Old ones are merged, which limits the memory for streams that
// never report a final figure.
func (b *usageBook) guess(r UsageReport) {
	if len(b.provisional.reports) >= recentMessages {
		merged := UsageReport{Key: "\x00older", CostUSD: new(0.0)}
		for _, old := range b.provisional.reports {
			merged.Tokens.Add(old.Tokens)
			if merged.CostUSD != nil && old.CostUSD != nil {
				*merged.CostUSD += *old.CostUSD
			} else {
				merged.CostUSD = nil
			}
		}
		b.provisional.forget()
		b.provisional.set(merged)
	}
	b.provisional.set(r)
}

// book adds an increment to its model and prices it.
func (b *usageBook) book(model string, increment TokenUsage, reported *float64, atMs int64) (TokenUsage, bool) {
	total := b.last
	if total == nil || b.lastModel != model {
		if total = b.perModel[model]; total == nil {
			total = &modelTotal{}
			b.perModel[strings.Clone(model)] = total
		}
		b.last, b.lastModel = total, strings.Clone(model)
	}
	increment.TotalTokens = increment.Total()
	increment.CostUSD, increment.CostSource = b.price(model, increment, reported, atMs)
	if increment.TotalTokens == 0 && (increment.CostUSD == nil || *increment.CostUSD == 0) {
		return increment, false
	}
	total.tokens.Add(increment)
	switch increment.CostSource {
	case CostUnknown:
		total.unpriced = true
	case CostComputed:
		total.computed = true
		total.cost += *increment.CostUSD
	default:
		total.cost += *increment.CostUSD
	}
	return increment, true
}

// price takes the agent's figure unless it says that tokens were free: some agents report only
// zeros.
func (b *usageBook) price(model string, tokens TokenUsage, reported *float64, atMs int64) (*float64, string) {
	if reported != nil && (*reported > 0 || tokens.TotalTokens == 0) {
		return reported, CostReported
	}
	if b.prices != nil {
		if usd, known := b.prices(model, tokens, atMs); known {
			return &usd, CostComputed
		}
	}
	return nil, CostUnknown
}

// total sums all models, and what was only provisionally reported.
func (b *usageBook) total() TokenUsage {
	var sum modelTotal
	// In another order the cost would differ in its last digit.
	for _, name := range slices.Sorted(maps.Keys(b.perModel)) {
		m := b.perModel[name]
		sum.tokens.Add(m.tokens)
		sum.cost += m.cost
		sum.computed = sum.computed || m.computed
		sum.unpriced = sum.unpriced || m.unpriced
	}
	for _, r := range b.provisional.reports {
		sum.tokens.Add(r.Tokens)
		sum.tokens.Partial = true
		if r.CostUSD == nil {
			sum.unpriced = true
			continue
		}
		sum.cost += *r.CostUSD
		sum.estimated = true
	}
	return sum.usage()
}

func (b *usageBook) models() map[string]TokenUsage {
	if len(b.perModel) == 0 {
		return nil
	}
	models := make(map[string]TokenUsage, len(b.perModel))
	for name, m := range b.perModel {
		if usage := m.usage(); usage.TotalTokens > 0 || usage.CostUSD != nil {
			models[name] = usage
		}
	}
	return models
}

func (m *modelTotal) usage() TokenUsage {
	u := m.tokens
	u.TotalTokens = u.Total()
	switch {
	case m.unpriced || (u.TotalTokens == 0 && m.cost == 0):
		u.CostUSD, u.CostSource = nil, CostUnknown
	case m.estimated:
		u.CostUSD, u.CostSource = &m.cost, CostEstimated
	case m.computed:
		u.CostUSD, u.CostSource = &m.cost, CostComputed
	default:
		u.CostUSD, u.CostSource = &m.cost, CostReported
	}
	return u
}

// since returns what a counter has counted between two reports, and its cost.
func since(now, before UsageReport) (TokenUsage, *float64) {
	now.Tokens.CostUSD, before.Tokens.CostUSD = now.CostUSD, before.CostUSD
	increment := now.Tokens.Since(before.Tokens)
	return increment, increment.CostUSD
}

func decreased(now, before UsageReport) bool {
	return now.Tokens.InputTokens < before.Tokens.InputTokens || now.Tokens.OutputTokens < before.Tokens.OutputTokens ||
		now.Tokens.CacheReadTokens < before.Tokens.CacheReadTokens ||
		now.Tokens.CacheWriteTokens < before.Tokens.CacheWriteTokens
}
