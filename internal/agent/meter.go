package agent

import (
	"time"

	"github.com/fit-eval/fit/session"
)

// meter follows an agent's stream: it counts turns, tokens and cost, and notices the moment at
// which a limit is reached. It is the only place that measures the limits of agents whose model
// calls do not go through the gateway; a caller with a budget over several agents learns the counts
// through Config.Consumed. The conversation's lock guards it.
type meter struct {
	decoder session.Decoder
	fold    *session.Fold
	lane    string
	lines   int64

	// The limits; 0 = unlimited.
	maxTurns   int
	maxTokens  int64
	maxCostUSD float64

	began mark               // where the stream stood when the prompt began
	seen  session.TokenUsage // the last total
	over  reason             // the limit that the prompt has reached; reasonExit if none
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
		decoder:   cfg.Dialect.New(),
		fold:      session.NewFold(session.Options{Flat: true, Prices: cfg.Config.Prices}),
		lane:      cfg.Config.Name,
		maxTokens: cfg.Config.MaxTokens,
		over:      reasonExit,
	}
	if cfg.EnforceTurns && cfg.Config.Seat == nil { // the gateway counts turns exactly
		m.maxTurns = cfg.Config.MaxTurns
	}
	if cfg.EnforceBudget {
		m.maxCostUSD = cfg.Config.MaxCostUSD
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
// something new about that.
func (m *meter) take(event []byte, atMs int64) (used session.TokenUsage, more bool) {
	m.lines++
	m.decoder.Decode(event, session.Stamp{Line: m.lines, Ts: atMs, Lane: m.lane}, m.fold)
	total := m.fold.TotalUsage()
	if m.over == reasonExit && m.final() == nil {
		m.over = m.reached(total)
	}
	more = total.TotalTokens != m.seen.TotalTokens || (total.CostUSD == nil) != (m.seen.CostUSD == nil)
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

// reached returns the limit that is reached, or reasonExit.
func (m *meter) reached(total session.TokenUsage) reason {
	switch turns := m.fold.Turns() - m.began.turns; {
	// The last turn and its tool calls may finish; the limit forbids only another call of the
	// model.
	case m.maxTurns > 0 && (turns > m.maxTurns ||
		turns == m.maxTurns && m.fold.OpenCalls() == 0 && m.fold.AwaitsModel()):
		return reasonTurns
	case m.maxTokens > 0 && total.TotalTokens >= m.maxTokens:
		return reasonTokens
	case m.maxCostUSD > 0 && total.CostUSD != nil && *total.CostUSD >= m.maxCostUSD:
		return reasonBudget
	default:
		return reasonExit
	}
}
