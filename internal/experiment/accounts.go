package experiment

import (
	"sync"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Accounts pay for an experiment: one account for all of it, below it one for each arm, and below
// that one for each attempt in flight. An executor on the same machine pays model calls from them
// as they happen; for other attempts the engine charges what their records say.
type Accounts struct {
	whole *gateway.Account

	mu       sync.Mutex
	ofArm    gateway.Budget
	arms     map[string]*gateway.Account
	attempts map[ledger.Cell]*gateway.Account
}

// NewAccounts opens accounts without budgets.
func NewAccounts() *Accounts {
	return &Accounts{
		whole:    gateway.NewAccount("the experiment", gateway.Budget{}, nil),
		arms:     map[string]*gateway.Account{},
		attempts: map[ledger.Cell]*gateway.Account{},
	}
}

// SetPrices sets the prices of the models that the accounts pay.
func (a *Accounts) SetPrices(prices session.Prices) { a.whole.SetPrices(prices) }

// Whole returns the account of the experiment.
func (a *Accounts) Whole() *gateway.Account { return a.whole }

// Attempt returns the account of the attempt in flight at a cell.
func (a *Accounts) Attempt(cell Cell) *gateway.Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.attempts[cell.Key()]
	if account == nil {
		account = a.arm(cell.Arm).Child("this attempt", gateway.Budget{})
		a.attempts[cell.Key()] = account
	}
	return account
}

// arm returns the account of an arm. The lock must be held.
func (a *Accounts) arm(name string) *gateway.Account {
	account := a.arms[name]
	if account == nil {
		account = a.whole.Child("arm "+name, a.ofArm)
		a.arms[name] = account
	}
	return account
}

// spentBy returns what an arm has spent.
func (a *Accounts) spentBy(arm string) (usd float64, tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.arm(arm).Spent()
}

// charge adds what was spent before, or elsewhere, by an arm.
func (a *Accounts) charge(arm string, usd *float64, tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.arm(arm).Charge(valueOf(usd), tokens)
}

// settle closes the account of an attempt. What its record says beyond what was paid is charged.
func (a *Accounts) settle(r *ledger.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	usd, tokens := valueOf(r.CostUSD), r.Tokens.Total()
	if account := a.attempts[r.Cell()]; account != nil {
		paid, used := account.Spent()
		usd, tokens = max(0, usd-paid), max(0, tokens-used)
		delete(a.attempts, r.Cell())
	}
	a.arm(r.Arm).Charge(usd, tokens)
}

// rest returns what the attempts in flight of an arm may still need, if each needs what is expected
// of it.
func (a *Accounts) rest(arm string, inFlight int, expected need) need {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := need{usd: float64(inFlight) * expected.usd, tokens: float64(inFlight) * expected.tokens}
	for cell, account := range a.attempts {
		if cell.Arm != arm {
			continue
		}
		usd, tokens := account.Spent()
		rest.usd -= min(usd, expected.usd)
		rest.tokens -= min(float64(tokens), expected.tokens)
	}
	return need{usd: max(0, rest.usd), tokens: max(0, rest.tokens)}
}

// setBudgets changes what the experiment and each of its arms may spend.
func (a *Accounts) setBudgets(budgets Budgets) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ofArm = budgets.Arm.Account()
	a.whole.Rebudget(budgets.Experiment.Account())
	for _, arm := range a.arms {
		arm.Rebudget(a.ofArm)
	}
}

// Account returns the part of a budget that an account keeps: all of it but time.
func (b Budget) Account() gateway.Budget { return gateway.Budget{USD: b.USD, Tokens: b.Tokens} }

func valueOf(usd *float64) float64 {
	if usd == nil {
		return 0
	}
	return *usd
}
