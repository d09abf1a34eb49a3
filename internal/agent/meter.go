package agent

import (
	"time"

	"github.com/fit-eval/fit/session"
)

// meter follows an agent's stream: it counts turns, tokens and cost, and notices the moment at
// which the limit of turns is reached. The conversation's lock guards it.
type meter struct {
	decoder session.Decoder
	fold    *session.Fold
	lane    string
	lines   int64

	maxTurns int // 0 = unlimited

	began mark               // where the stream stood when the prompt began
	seen  session.TokenUsage // the last total
	over  reason             // reasonTurns if the prompt has reached the limit; else reasonExit
}

// mark is the state of a stream when a prompt began.
type mark struct {
	startMs int64
	finals  int
	turns   int
	reports int
	usage   session.TokenUsage
}

func newMeter(cfg ConversationConfig) meter {
	m := meter{
		decoder: cfg.Dialect.New(),
		fold:    session.NewFold(session.Options{Flat: true, Prices: cfg.Config.Prices}),
		lane:    cfg.Config.Name,
		over:    reasonExit,
	}
	if cfg.EnforceTurns && cfg.Config.Seat == nil { // the gateway counts turns exactly
		m.maxTurns = cfg.Config.MaxTurns
	}
	// A stream that names its model replaces this.
	m.fold.Identify(session.Identity{Model: cfg.Config.Model})
	return m
}

// begin starts a prompt.
func (m *meter) begin() mark {
	_, finals := m.fold.Finals()
	m.began = mark{
		startMs: time.Now().UnixMilli(),
		finals:  finals,
		turns:   m.fold.Turns(),
		reports: m.fold.UsageReports(),
		usage:   m.fold.TotalUsage(),
	}
	m.over = reasonExit
	return m.began
}

// take reads an event. It returns what the prompt has consumed so far, and whether the event said
// something new about that before the prompt's end.
func (m *meter) take(event []byte, atMs int64) (used session.TokenUsage, more bool) {
	m.lines++
	m.decoder.Decode(event, session.Stamp{Line: m.lines, Ts: atMs, Lane: m.lane}, m.fold)
	total := m.fold.TotalUsage()
	running := m.final() == nil
	if running && m.over == reasonExit {
		m.over = m.reached()
	}
	more = running && (total.TotalTokens != m.seen.TotalTokens || (total.CostUSD == nil) != (m.seen.CostUSD == nil))
	m.seen = total
	return total.Since(m.began.usage), more
}

// final returns the final event of the prompt, if it has come.
func (m *meter) final() *session.Final {
	final, finals := m.fold.Finals()
	if finals == m.began.finals {
		return nil
	}
	return final
}

// reached returns reasonTurns if the limit of turns is reached, or else reasonExit. The last turn
// and its tool calls may finish; the limit forbids only another call of the model.
func (m *meter) reached() reason {
	turns := m.fold.Turns() - m.began.turns
	if m.maxTurns > 0 && (turns > m.maxTurns ||
		turns == m.maxTurns && m.fold.OpenCalls() == 0 && m.fold.AwaitsModel()) {
		return reasonTurns
	}
	return reasonExit
}
