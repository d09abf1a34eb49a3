package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// UnpricedError says that a budget cannot be kept because the price of a member is not known.
type UnpricedError struct {
	Members []string
}

func (e *UnpricedError) Error() string {
	return fmt.Sprintf("a budget needs prices, and %s has none: set FIT_PRICES to a price file, or drop the budget",
		strings.Join(e.Members, ", "))
}

// account opens the account that pays the judges; nil is no limit.
func (l Limits) account(spent float64) *gateway.Account {
	if l.BudgetUSD == nil {
		return nil
	}
	account := gateway.NewAccount("the judges", gateway.Budget{USD: *l.BudgetUSD}, session.ListPrices(l.Prices))
	account.Charge(spent, 0)
	return account
}

// checkPrices refuses members without a price where there is a budget.
func (l Limits) checkPrices(panel Panel) error {
	if l.BudgetUSD == nil {
		return nil
	}
	var unpriced []string
	for _, member := range panel.Members {
		if !l.Prices.Priced(member.Model, l.Now()) {
			unpriced = append(unpriced, fmt.Sprintf("%s (%s)", member.Name, member.Model))
		}
	}
	if len(unpriced) > 0 {
		return &UnpricedError{unpriced}
	}
	return nil
}

// Check finds problems that would keep members from being asked, without asking them: a budget
// without prices, which is an UnpricedError, and API keys that are not set.
func (l Limits) Check(panel Panel) error {
	l = l.withDefaults()
	if err := l.checkPrices(panel); err != nil {
		return err
	}
	for _, member := range panel.Members {
		if _, err := newClient(member, l.Getenv, nil); err != nil {
			return fmt.Errorf("judge %s cannot be asked: %w", member.Name, err)
		}
	}
	return nil
}

// reserve takes the maximum cost of a request out of the budget, waiting for calls in flight that
// may turn out cheaper.
func (a *asking) reserve(ctx context.Context, r *request) (*gateway.Reservation, error) {
	reserved, err := a.account.Reserve(ctx, gateway.Estimate{
		Model:  r.member.Model,
		Bytes:  r.size(),
		Output: maxReplyTokens,
		Paid:   true,
	})
	if _, empty := errors.AsType[*gateway.BudgetError](err); empty {
		err = fmt.Errorf("%w; raise --judge-max-cost-usd to continue", err)
	}
	return reserved, err
}

// settle replaces a reservation with the actual cost of the call.
func (a *asking) settle(reserved *gateway.Reservation, cost *float64) {
	if cost != nil && a.account != nil {
		a.account.Charge(*cost, 0)
	}
	reserved.Settle(nil)
}
