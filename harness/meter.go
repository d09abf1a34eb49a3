package harness

import (
	"sync"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/session"
)

// meter follows what an agent consumes while it is in a turn, as far as its stream tells: a budget
// then ends the turn that uses it up and not only the next one, and an interrupted turn is not
// counted as free.
type meter struct {
	dialects session.Dialects
	prices   session.Prices

	mu      sync.Mutex
	decoder session.Decoder // nil until the agent runs, and where nobody can read what it prints
	fold    *session.Fold
	model   string
	lines   int64
	atMs    int64
	counted session.TokenUsage // by the turns before
}

func newMeter(played agent.Agent, prices session.Prices, model string) *meter {
	return &meter{dialects: played.Dialects(), prices: prices, model: model}
}

// started is called before the first event of the agent's process.
func (m *meter) started(info agent.Started) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.model = or(info.Model, m.model)
	if dialect, known := m.dialects.Named(info.Protocol); known && m.decoder == nil {
		m.decoder, m.fold = dialect.New(), session.NewFold(session.Options{Flat: true, Prices: m.prices})
	}
}

// take reads an event. It reports what the turn has consumed so far, if the event says something
// new about that.
func (m *meter) take(event []byte, atMs int64) (ahead spending, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decoder == nil {
		return spending{}, false
	}
	before := m.fold.TotalUsage()
	m.lines++
	m.atMs = atMs
	m.decoder.Decode(event, session.Stamp{Line: m.lines, Ts: atMs}, m.fold)
	after := m.fold.TotalUsage()
	if after.TotalTokens == before.TotalTokens && (after.CostUSD == nil) == (before.CostUSD == nil) {
		return spending{}, false
	}
	return m.sinceLastTurn(), true
}

// sinceLastTurn is what the turn has consumed. The lock must be held.
func (m *meter) sinceLastTurn() spending {
	used := m.fold.TotalUsage().Since(m.counted)
	if used.TotalTokens <= 0 {
		return spending{}
	}
	cost := used.CostUSD
	if cost == nil && m.prices != nil { // before the end of a turn, agents do not say what it costs
		if usd, known := m.prices(or(m.fold.Identity().Model, m.model), used, m.atMs); known {
			cost = &usd
		}
	}
	var sum spending
	sum.add(0, used.TotalTokens, cost)
	return sum
}

// settle ends the turn and returns what it has consumed.
func (m *meter) settle() spending {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decoder == nil {
		return spending{}
	}
	used := m.sinceLastTurn()
	m.counted = m.fold.TotalUsage()
	return used
}
