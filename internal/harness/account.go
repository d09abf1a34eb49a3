package harness

import (
	"errors"

	"github.com/fit-eval/fit/internal/gateway"
)

// openAccounts opens the accounts that pay for the members' model calls, where these go through the
// gateway: one for the session, below the caller's if there is one, and below it one for each
// member. Money spent before a crash counts.
func (l *loop) openAccounts() {
	base, state := l.cfg.options.Base, l.hub.state
	whole := budgetOf(state.settings.Limits)
	bounded := base.Account != nil || whole != gateway.Budget{}
	for _, r := range l.runners {
		bounded = bounded || budgetOf(r.limits()) != gateway.Budget{}
	}
	if !bounded {
		return
	}
	const name = "the session"
	if base.Account != nil {
		l.account = base.Account.Child(name, whole)
	} else {
		l.account = gateway.NewAccount(name, whole, base.Prices)
	}
	for _, r := range l.runners {
		r.account = l.account.Child(r.member.name, budgetOf(r.limits()))
		r.account.Charge(r.member.usage.costUSD, r.member.usage.tokens)
	}
}

func budgetOf(limits Limits) gateway.Budget {
	return gateway.Budget{USD: limits.CostUSD, Tokens: limits.Tokens}
}

// accountOf returns the account of a member; nil if its spending has no limit.
func (l *loop) accountOf(member string) *gateway.Account {
	for _, r := range l.runners {
		if r.member.name == member {
			return r.account
		}
	}
	return l.account
}

// endWithoutBudget handles an account that had too little left for a call of the round: it ends the
// member's part in the session, or the session, whichever the account pays for. The lock must be
// held.
func (r *runner) endWithoutBudget(out outcome) bool {
	empty, ok := errors.AsType[*gateway.BudgetError](out.result.Err)
	if !ok {
		return false
	}
	name, limit := "cost", empty.Budget().USD
	if empty.Tokens {
		name, limit = "tokens", float64(empty.Budget().Tokens)
	}
	switch {
	case empty.Account == r.account && !empty.Unpriced:
		r.spent(name, limit, ReasonBudget)
	case empty.Account == r.loop.account && !empty.Unpriced:
		r.loop.reached(name, limit, ReasonBudget)
	default:
		r.loop.stopLocked(ReasonBudget, empty)
	}
	return true
}
