package judge

import (
	"fmt"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/price"
)

// BudgetError says that the budget does not pay for the next question.
type BudgetError struct {
	BudgetUSD, SpentUSD float64
	// NextUSD is the most that the next question may cost.
	NextUSD float64
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the judges' budget of %s does not cover the next question: %s is spent, and a question "+
		"may cost %s; raise --judge-max-cost-usd to continue", display.Dollars(e.BudgetUSD),
		display.FineDollars(e.SpentUSD), display.FineDollars(e.NextUSD))
}

// UnpricedError says that a budget cannot be kept because the price of a member is not known.
type UnpricedError struct {
	Members []string
}

func (e *UnpricedError) Error() string {
	return fmt.Sprintf("a budget needs prices, and %s has none: set FIT_PRICES to a price file, or drop the budget",
		strings.Join(e.Members, ", "))
}

// budgetMeter keeps a budget: the maximum cost of a call is reserved before the call is made.
type budgetMeter struct {
	prices price.Table
	limit  *float64 // nil: no bound
	now    func() int64

	mu              sync.Mutex
	settled         *sync.Cond
	spent, reserved float64
}

func newBudgetMeter(limits Limits, spent float64) *budgetMeter {
	p := &budgetMeter{
		prices: limits.Prices,
		limit:  limits.BudgetUSD,
		now:    limits.Now,
		spent:  spent,
	}
	p.settled = sync.NewCond(&p.mu)
	return p
}

// check refuses members without a price where there is a budget.
func (p *budgetMeter) check(panel Panel) error {
	if p.limit == nil {
		return nil
	}
	var unpriced []string
	for _, member := range panel.Members {
		if !p.prices.Priced(member.Model, p.now()) {
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
	if err := newBudgetMeter(l, 0).check(panel); err != nil {
		return err
	}
	for _, member := range panel.Members {
		if _, err := newClient(member, l.Getenv, nil); err != nil {
			return fmt.Errorf("judge %s cannot be asked: %w", member.Name, err)
		}
	}
	return nil
}

// bytesPerToken is a cautious guess: a token has rarely fewer.
const bytesPerToken = 2

// reserve takes the maximum cost of a request out of the budget, waiting for calls in flight whose
// reservation may turn out too large.
func (p *budgetMeter) reserve(r *request) (float64, error) {
	if p.limit == nil {
		return 0, nil
	}
	most := p.prices.Cost(r.member.Model, p.now(), price.TokenUsage{
		InputTokens:  int64(r.size()/bytesPerToken + 100),
		OutputTokens: maxReplyTokens,
	})
	if most == nil {
		return 0, &UnpricedError{[]string{r.member.Name}}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.spent+p.reserved+*most > *p.limit {
		if p.reserved <= 1e-12 {
			return 0, &BudgetError{BudgetUSD: *p.limit, SpentUSD: p.spent, NextUSD: *most}
		}
		p.settled.Wait()
	}
	p.reserved += *most
	return *most, nil
}

// settle replaces a reservation with the actual cost of the call.
func (p *budgetMeter) settle(reserved float64, cost *float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved -= reserved
	if cost != nil {
		p.spent += *cost
	}
	p.settled.Broadcast()
}
