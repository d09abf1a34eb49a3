package harness

import (
	"errors"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
)

// openAccounts opens the accounts that pay for the members: one for the session, below the caller's
// if there is one, and below it one for each member. Money spent before a crash counts.
func (l *loop) openAccounts() {
	l.account = openAccount(l.cfg.options.Base, "the session", l.hub.state.settings.Limits)
	for _, r := range l.runners {
		r.account = l.account.Child(r.member.name, budgetOf(r.limits()))
		r.account.Charge(r.member.usage.costUSD, r.member.usage.tokens)
	}
}

func openAccount(base agent.Config, name string, limits Limits) *gateway.Account {
	if base.Account != nil {
		return base.Account.Child(name, budgetOf(limits))
	}
	return gateway.NewAccount(name, budgetOf(limits), base.Prices)
}

func budgetOf(limits Limits) gateway.Budget {
	return gateway.Budget{USD: limits.CostUSD, Tokens: limits.Tokens}
}

// accountOf returns the account of a member.
func (l *loop) accountOf(member string) *gateway.Account {
	for _, r := range l.runners {
		if r.member.name == member {
			return r.account
		}
	}
	return l.account
}

// unreported returns what the member has spent that no line of the trace has counted yet. A cost
// that is not known is none.
func (r *runner) unreported() (tokens int64, costUSD *float64) {
	usd, tokens := r.account.Spent()
	tokens -= r.member.usage.tokens + r.cut.tokens
	usd -= r.member.usage.costUSD
	if r.cut.costUSD != nil {
		usd -= *r.cut.costUSD
	}
	if usd > 0 {
		costUSD = &usd
	}
	return tokens, costUSD
}

// endWithoutBudget handles an account that is empty, or had too little left for a call of a round:
// it ends the member's part in the session, or the session, whichever the account pays for. The
// lock must be held.
func (r *runner) endWithoutBudget(err error) bool {
	empty, ok := errors.AsType[*gateway.BudgetError](err)
	if !ok {
		return false
	}
	budget := empty.Account.Budget()
	name, limit := "cost", budget.USD
	if empty.Tokens {
		name, limit = "tokens", float64(budget.Tokens)
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
