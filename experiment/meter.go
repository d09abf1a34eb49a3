package experiment

import (
	"context"
	"errors"

	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// errTokenBudget is the cause with which an agent is ended that has used up its tokens.
var errTokenBudget = errors.New("the cell's budget of tokens is used up")

// meter counts the tokens of an agent while it works and ends it when it has used too many. Agents
// know budgets in dollars, if any; tokens are ours to count.
type meter struct {
	limit    int64
	dialects session.Dialects
	decoder  session.Decoder
	fold     *session.Fold
	stop     context.CancelCauseFunc
}

func newMeter(limit int64, dialects session.Dialects, stop context.CancelCauseFunc) *meter {
	return &meter{
		limit:    limit,
		dialects: dialects,
		fold:     session.NewFold(session.Options{Flat: true}),
		stop:     stop,
	}
}

// line takes in a line of the trace.
func (m *meter) line(env trace.Envelope) {
	if m.limit <= 0 || env.Source != harness.RunLane {
		return
	}
	if m.decoder == nil {
		dialect, known := m.dialects.Of(env.Event)
		if !known {
			return
		}
		m.decoder = dialect.New()
	}
	m.decoder.Decode(env.Event, session.Stamp{Line: env.Seq + 1, Ts: env.Ts, Lane: env.Source}, m.fold)
	if m.fold.TotalUsage().TotalTokens > m.limit {
		m.stop(errTokenBudget)
	}
}
