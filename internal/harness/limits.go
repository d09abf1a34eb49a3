package harness

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/trace"
)

// errMemberTimeout cancels a round whose member has used up its time.
var errMemberTimeout = errors.New("the participant's time is up")

// errIdle cancels a round in which nothing happened for too long.
var errIdle = errors.New("nothing happened in the turn")

// The flags of fit-harness that set limits, by the name of the limit.
var (
	sessionFlags = map[string]string{
		"timeout": "--timeout",
		"turns":   "--session-max-turns",
		"tokens":  "--max-tokens",
		"cost":    "--max-cost-usd",
	}
	participantFlags = map[string]string{
		"timeout": "--participant-timeout",
		"turns":   "--participant-max-turns",
		"tokens":  "--participant-max-tokens",
		"cost":    "--participant-max-cost-usd",
	}
)

const (
	leadTurnsFlag = "--max-lead-turns"
	idleFlag      = "--idle-timeout"
	callTurnsFlag = "--max-turns"
)

// String returns which limit was reached, and the flag that sets it.
func (e limitEvent) String() string {
	return cmp.Or(e.Agent, "the session") + " " + e.predicate()
}

// predicate returns the same without naming whose limit it is.
func (e limitEvent) predicate() string {
	text := "reached its limit of " + amount(e.Name, e.Limit)
	if e.Name == "idle" {
		text = "did nothing for " + amount(e.Name, e.Limit)
	}
	if e.Flag != "" {
		text += " (" + e.Flag + ")"
	}
	return text
}

// amount writes a limit as people do.
func amount(name string, limit float64) string {
	switch name {
	case "timeout", "idle":
		return display.Span(time.Duration(limit * float64(time.Second)))
	case "cost":
		return display.Budget(limit)
	case "model_turns":
		return amount("turns", limit) + " of the model in one call"
	default:
		unit := cmp.Or(name, "turns")
		if limit == 1 {
			unit = strings.TrimSuffix(unit, "s")
		}
		return fmt.Sprintf("%.0f %s", limit, unit)
	}
}

// reached records a limit of the session and ends it. The lock must be held.
func (l *loop) reached(name string, limit float64, reason string) {
	l.limited(limitEvent{
		Type:  typeLimit,
		Name:  name,
		Limit: limit,
		Flag:  sessionFlags[name],
	})
	l.stopLocked(reason, nil)
}

// limited records a limit that was reached. The lock must be held.
func (l *loop) limited(e limitEvent) {
	l.hub.commit(e)
	l.limit = e.String()
}

// exhausted checks the limits that apply before a round. The lock must be held.
func (r *runner) exhausted() bool {
	l, m, s := r.loop, r.member, r.loop.hub.state
	switch limit := s.settings.Limits.Turns; {
	case limit > 0 && s.turns >= limit:
		l.reached("turns", float64(limit), ReasonMaxTurns)
		return true
	case m == s.lead && m.turns >= s.settings.MaxLeadTurns:
		l.limited(limitEvent{
			Type:  trace.TypeLeadTurnLimit,
			Agent: m.name,
			Limit: float64(s.settings.MaxLeadTurns),
			Flag:  leadTurnsFlag,
		})
		l.stopLocked(ReasonMaxTurns, nil)
		return true
	}
	if limit := r.limits().Turns; limit > 0 && m.turns >= limit {
		r.spent("turns", float64(limit), ReasonMaxTurns)
		return true
	}
	return false
}

// overBudget checks what was consumed after a round. The lock must be held.
func (r *runner) overBudget() bool {
	r.warnUnknownCost()
	for _, account := range []*gateway.Account{r.loop.account, r.account} {
		if r.endWithoutBudget(account.Empty()) {
			return true
		}
	}
	if limit := r.limits().Timeout; limit > 0 && r.member.usage.tookMs >= limit.Milliseconds() {
		r.spent("timeout", limit.Seconds(), ReasonTimeout)
		return true
	}
	return false
}

// warnUnknownCost says, once for each member, that a limit in dollars cannot be kept because the
// member does not report what it costs.
func (r *runner) warnUnknownCost() {
	h, m := r.loop.hub, r.member
	limited := h.state.settings.Limits.CostUSD > 0 || r.limits().CostUSD > 0
	if limited && m.usage.unknown && !m.warned {
		m.warned = true
		h.commit(noteEvent{
			Type: typeWarning, Agent: m.name,
			Text: "the cost of this agent is unknown, so the limit in dollars does not count it",
		})
	}
}

// limits returns the member's own limits; a participant without its own gets those of all
// participants.
func (r *runner) limits() Limits {
	limits := r.member.config.Limits
	if r.member == r.loop.hub.state.lead {
		return limits
	}
	byDefault := r.loop.hub.state.settings.ParticipantLimits
	return Limits{
		Timeout: cmp.Or(limits.Timeout, byDefault.Timeout),
		Turns:   cmp.Or(limits.Turns, byDefault.Turns),
		Tokens:  cmp.Or(limits.Tokens, byDefault.Tokens),
		CostUSD: cmp.Or(limits.CostUSD, byDefault.CostUSD),
	}
}

// spent removes a member that has used up its budget from the session; without its lead a session
// ends.
func (r *runner) spent(name string, limit float64, reason string) {
	l, m := r.loop, r.member
	e := limitEvent{
		Type:  typeLimit,
		Agent: m.name,
		Name:  name,
		Limit: limit,
	}
	if m != l.hub.state.lead {
		e.Flag = participantFlags[name]
	}
	l.limited(e)
	if m == l.hub.state.lead {
		l.stopLocked(reason, nil)
		return
	}
	l.hub.dismiss(m, e.predicate())
	l.working.Go(r.closeSession) // its agent is not needed any more
}

// startWatch starts the timers that end a round that takes too long, or in which nothing happens.
// The lock must be held.
func (r *runner) startWatch() {
	interrupt := r.interrupt
	if limit := r.limits().Timeout; limit > 0 {
		left := limit - time.Duration(r.member.usage.tookMs)*time.Millisecond
		r.limit = time.AfterFunc(left, func() { interrupt(errMemberTimeout) })
	}
	if idle := r.loop.hub.state.settings.IdleTimeout; idle > 0 {
		r.idleTimer.Store(time.AfterFunc(idle, func() { interrupt(errIdle) }))
	}
}

// active says that something happened in the member's round.
func (r *runner) active() {
	if timer := r.idleTimer.Load(); timer != nil && timer.Stop() {
		timer.Reset(r.loop.hub.state.settings.IdleTimeout)
	}
}

// idleError returns an error that says how long nothing happened.
func (r *runner) idleError() error {
	limit := amount("idle", r.loop.hub.state.settings.IdleTimeout.Seconds())
	return fmt.Errorf("%w for %s (%s)", errIdle, limit, idleFlag)
}
