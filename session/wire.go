package session

import (
	"maps"
	"slices"
	"sync"

	"github.com/fit-eval/fit/internal/gateway/calls"
)

// ModelCall is a call of the model that the gateway saw.
type ModelCall struct {
	calls.Call
	// Turn is the turn of the model that the call is part of, counted from 1. A call that fails has
	// the turn of the one that succeeds after it. Calls without tools, such as those that find a
	// title, have none in a session whose other calls have tools.
	Turn int `json:"turn,omitempty"`
}

// Succeeded reports whether the model's answer arrived whole.
func (c *ModelCall) Succeeded() bool { return succeeded(&c.Call) }

func succeeded(c *calls.Call) bool {
	return (c.Outcome == calls.OK || c.Outcome == calls.Replayed) && c.Status < 400
}

// cutOff reports whether an answer began, or may have, and did not arrive whole.
func cutOff(c *calls.Call) bool {
	return c.Outcome == calls.Cut || c.Outcome == calls.Disconnected || c.Outcome == calls.Budget
}

// NumberTurns returns the turn of each of the calls of one agent.
func NumberTurns(all []ModelCall) {
	withTools := slices.ContainsFunc(all, func(c ModelCall) bool { return c.Tools > 0 })
	turn := 1
	for i := range all {
		c := &all[i]
		c.Turn = 0
		if withTools && c.Tools == 0 || c.Messages == 0 && c.Usage == nil && c.Succeeded() {
			continue // not a turn, or a question that no model answers, such as the list of models
		}
		c.Turn = turn
		if c.Succeeded() {
			turn++
		}
	}
}

// wireBook adds up the calls that the gateway saw.
type wireBook struct {
	perModel map[string]*modelTotal
	said     int // calls whose usage is known
	silent   int // calls that were answered, at least in part, and reported no usage
	wrong    int // calls that reported a usage that cannot be, which agents repeat
	refused  int // calls that a budget refused
	partial  bool
	original *float64
	replayed bool
}

// ModelCall records a call that the gateway saw. The usage of a session is what the gateway saw, if
// it saw the usage of every call; the agent's own figures are kept beside it.
func (f *Fold) ModelCall(call calls.Call) {
	f.wire.add(&call)
	if !f.opts.Flat {
		f.session.ModelCalls = append(f.session.ModelCalls, ModelCall{Call: call})
	}
}

func (b *wireBook) add(c *calls.Call) {
	if c.Outcome == calls.Replayed {
		if !b.replayed {
			b.replayed, b.original = true, new(float64)
		}
		if b.original == nil || c.OriginalUSD == nil {
			b.original = nil // unknown
		} else {
			b.original = new(*b.original + *c.OriginalUSD)
		}
	}
	if c.Usage == nil {
		switch {
		case c.Implausible != "":
			b.wrong++
		case c.Outcome == calls.Budget && c.Status >= 400:
			b.refused++
		case succeeded(c) && c.Messages > 0, cutOff(c) && c.Tools > 0:
			b.silent++
		case cutOff(c): // a question beside the work, such as one for a title
			b.partial = true
		}
		return
	}
	b.said++
	b.partial = b.partial || cutOff(c)
	if b.perModel == nil {
		b.perModel = map[string]*modelTotal{}
	}
	total := b.perModel[c.Model]
	if total == nil {
		total = &modelTotal{}
		b.perModel[c.Model] = total
	}
	total.tokens.Add(c.Usage.TokenUsage)
	if c.CostUSD == nil {
		total.unpriced = true
	} else {
		total.cost += *c.CostUSD
	}
}

// wireUsage returns what one model consumed, as the gateway saw it.
func (m *modelTotal) wireUsage() TokenUsage {
	u := m.tokens
	u.TotalTokens = u.Total()
	u.CostUSD, u.CostSource = &m.cost, CostWire
	if m.unpriced {
		u.CostUSD, u.CostSource = nil, CostUnknown
	}
	return u
}

// prefer returns the usage that the gateway saw, if it is known for every call. Where a call said
// nothing, the agent's figures count if they are more than the gateway saw: less, or as much, means
// that the agent does not know either, and the cost is unknown.
func (b *wireBook) prefer(word TokenUsage) (usage TokenUsage, byWire bool) {
	var seen float64
	for _, name := range slices.Sorted(maps.Keys(b.perModel)) {
		usage = usage.Plus(b.perModel[name].wireUsage())
		seen += b.perModel[name].cost
	}
	usage.Partial = b.partial || b.silent > 0
	if b.wrong > 0 {
		usage.CostUSD, usage.CostSource, usage.Partial = nil, CostUnknown, true
		return usage, true
	}
	more := word.CostUSD != nil && *word.CostUSD > seen*(1+wordTolerance)
	switch {
	case b.said == 0 && (more || b.silent == 0 && !b.partial && b.refused == 0):
		return word, false
	case b.said == 0 && b.silent == 0 && !b.partial && word.TotalTokens == 0: // no call was let through
		return TokenUsage{CostUSD: new(float64), CostSource: CostWire}, true
	case b.said == 0:
		word.CostUSD, word.CostSource = nil, CostUnknown
		return word, false
	case b.silent > 0 && more:
		return word, false
	case b.silent > 0:
		usage.CostUSD, usage.CostSource = nil, CostUnknown
	case usage.CostUSD == nil && word.CostUSD != nil && seen > *word.CostUSD*(1+wordTolerance):
		usage.CostUSD, usage.CostSource, usage.Partial = &seen, CostWire, true
	case usage.CostUSD == nil && word.CostUSD != nil: // the agent may know a price that we do not
		usage.CostUSD, usage.CostSource = word.CostUSD, word.CostSource
	}
	return usage, true
}

// wordTolerance is how far an agent's sum may be below the gateway's and still count as equal.
const wordTolerance = 0.01

// settleUsage decides whose figures are the session's.
func (f *Fold) settleUsage() {
	s, b := &f.session, &f.wire
	NumberTurns(s.ModelCalls)
	s.OriginalCostUSD = b.original
	word := f.usage.total()
	usage, byWire := b.prefer(word)
	if s.Usage = usage; !byWire {
		s.ModelUsage = f.usage.models()
		return
	}
	s.ModelUsage = map[string]TokenUsage{}
	for name, total := range b.perModel {
		s.ModelUsage[name] = total.wireUsage()
	}
	if word.TotalTokens > 0 || word.CostUSD != nil {
		s.ReportedUsage = &word
	}
}

// Wire collects the calls that the gateway sees while a session runs. It is safe for use from many
// goroutines, and its zero value is ready.
type Wire struct {
	mu    sync.Mutex
	calls []calls.Call
}

// Add adds a call.
func (w *Wire) Add(call calls.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
}

// Count returns the number of calls so far.
func (w *Wire) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

// Answered returns how many calls with a conversation got an answer, or at least its beginning.
func (w *Wire) Answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	answered := 0
	for i := range w.calls {
		if c := &w.calls[i]; c.Messages > 0 && c.Status > 0 && c.Status < 400 {
			answered++
		}
	}
	return answered
}

// Usage returns what the calls from number first on consumed, if the gateway saw it for each of
// them; otherwise the agent's figures.
func (w *Wire) Usage(first int, word TokenUsage) TokenUsage {
	w.mu.Lock()
	defer w.mu.Unlock()
	var book wireBook
	for i := first; i < len(w.calls); i++ {
		book.add(&w.calls[i])
	}
	usage, _ := book.prefer(word)
	return usage
}
