package gateway

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/session"
)

// Budget bounds what an account may spend. A zero is no bound.
type Budget struct {
	USD    float64
	Tokens int64
}

// Account holds money and tokens that model calls are paid from. Accounts form a tree (experiment,
// arm, cell), and a call is paid from its own account and from all above it at once. What a call
// may cost is reserved before it starts, so two calls never spend the same dollar. A nil Account
// pays for everything.
type Account struct {
	name   string
	parent *Account
	tree   *accountTree

	// The tree's lock guards the rest.
	budget  Budget
	spent   amount
	held    amount // by calls that are running, and not yet spent
	running int
}

// accountTree is the state that the accounts of one tree share.
type accountTree struct {
	prices  session.Prices
	mu      sync.Mutex
	settled chan struct{} // closed and replaced whenever a call ends
}

// amount is money in billionths of a dollar, so that sums are exact, and tokens.
type amount struct{ nano, tokens int64 }

func (a amount) plus(b amount) amount  { return amount{a.nano + b.nano, a.tokens + b.tokens} }
func (a amount) minus(b amount) amount { return amount{a.nano - b.nano, a.tokens - b.tokens} }

// within reports whether an amount is no larger than another.
func (a amount) within(b amount) bool { return a.nano <= b.nano && a.tokens <= b.tokens }

func lesser(a, b amount) amount  { return amount{min(a.nano, b.nano), min(a.tokens, b.tokens)} }
func greater(a, b amount) amount { return amount{max(a.nano, b.nano), max(a.tokens, b.tokens)} }

// unbounded is more than anybody spends, and small enough that sums do not overflow.
const unbounded = math.MaxInt64 / 4

// nanos rounds up: a budget is never exceeded by rounding.
func nanos(usd float64) int64 { return int64(min(math.Ceil(usd*1e9), unbounded)) }

// NewAccount opens the account at the root of a tree. The name is for people: "this run".
func NewAccount(name string, budget Budget, prices session.Prices) *Account {
	return &Account{
		name:   name,
		budget: budget,
		tree:   &accountTree{prices: prices, settled: make(chan struct{})},
	}
}

// Child opens an account below this one.
func (a *Account) Child(name string, budget Budget) *Account {
	return &Account{
		name:   name,
		parent: a,
		tree:   a.tree,
		budget: budget,
	}
}

// Rebudget changes what the account may spend. Calls that wait try again; those that run keep what
// they hold.
func (a *Account) Rebudget(budget Budget) {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	a.budget = budget
	close(a.tree.settled)
	a.tree.settled = make(chan struct{})
}

// SetPrices sets the prices of all accounts of the tree.
func (a *Account) SetPrices(prices session.Prices) {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	a.tree.prices = prices
}

// Above reports whether calls that are paid from another account are paid from this one too.
func (a *Account) Above(other *Account) bool {
	for other = other.parent; other != nil && other != a; {
		other = other.parent
	}
	return other != nil
}

// Charge adds what was spent elsewhere, such as by an earlier process, to the account and to all
// above it.
func (a *Account) Charge(usd float64, tokens int64) {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	for each := a; each != nil; each = each.parent {
		each.spent = each.spent.plus(amount{nanos(usd), tokens})
	}
}

// Spent returns what the calls that have ended have cost.
func (a *Account) Spent() (usd float64, tokens int64) {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	return float64(a.spent.nano) / 1e9, a.spent.tokens
}

// Budget returns what the account itself may spend.
func (a *Account) Budget() Budget {
	if a == nil {
		return Budget{}
	}
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	return a.budget
}

// Empty returns a BudgetError if the account, or one above it, has nothing left.
func (a *Account) Empty() error {
	if a == nil {
		return nil
	}
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	return a.emptyLocked()
}

func (a *Account) emptyLocked() error {
	for each := a; each != nil; each = each.parent {
		if left := each.left(); left.nano <= 0 || left.tokens <= 0 {
			return &BudgetError{
				Account: each,
				Tokens:  left.tokens <= 0,
				Reason:  fmt.Sprintf("the budget of %s of %s is used up", each.name, each.budget),
			}
		}
	}
	return nil
}

// Tab charges an account what a prompt consumes whose model calls do not pass the gateway.
type Tab struct {
	account *Account
	used    amount
}

// Tab opens a tab.
func (a *Account) Tab() *Tab { return &Tab{account: a} }

// Report charges what the prompt has consumed so far, as its agent says; nil dollars are unknown. A
// BudgetError means that nothing is left: the prompt must be stopped.
func (t *Tab) Report(usd *float64, tokens int64) error {
	tree := t.account.tree
	tree.mu.Lock()
	defer tree.mu.Unlock()
	used := amount{tokens: tokens}
	if usd != nil {
		used.nano = nanos(*usd)
	}
	used = greater(used, t.used)
	for each := t.account; each != nil; each = each.parent {
		each.spent = each.spent.plus(used.minus(t.used))
	}
	t.used = used
	return t.account.emptyLocked()
}

// BudgetError reports a call that was refused, or stopped in the middle, because an account is
// empty or its bound cannot be kept.
type BudgetError struct {
	Account *Account // the one that is empty
	Reason  string
	// Tokens says that the account is out of tokens, and not of dollars.
	Tokens bool
	// Unpriced says that the call was refused because its price is unknown. No agent chooses that,
	// so the run is over, even if the agent could continue without the call.
	Unpriced bool
}

func (e *BudgetError) Error() string { return e.Reason }

// Reservation is the amount that a running call reserves. A nil Reservation is that of a nil
// Account.
type Reservation struct {
	model         string
	request       int   // bytes
	bytesPerToken int64 // of the stream
	priced        bool
	most          amount
	least         amount
	parts         []part // one for each account, the call's own first
	used          amount // according to the stream so far
	over          bool   // it is settled
}

// part is the amount that a call reserves in one account.
type part struct {
	account *Account
	held    amount
}

// Reserve takes what a call may cost from the account and from all above it. If an account has not
// enough left for the largest reply, the call waits for running calls, which usually need less than
// they hold; a call that is alone gets what is left, and Spend stops it when that is used up. A
// call that certainly costs more than what is left, or whose price is unknown although dollars are
// limited, gets a BudgetError.
func (a *Account) Reserve(ctx context.Context, e Estimate) (*Reservation, error) {
	if a == nil || !e.Paid {
		return nil, nil
	}
	r := &Reservation{model: e.Model, request: len(e.Body), bytesPerToken: streamedOther}
	if e.Protocol == Anthropic {
		r.bytesPerToken = streamedAnthropic
	}
	if r.most, r.least, r.priced = a.tree.bounds(e); !r.priced {
		if err := a.refuseUnpriced(e.Model); err != nil {
			return nil, err
		}
	}
	for {
		settled, err := a.take(r)
		switch {
		case err != nil:
			return nil, err
		case settled == nil:
			return r, nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// refuseUnpriced refuses a model without a price where an account is bounded in dollars.
func (a *Account) refuseUnpriced(model string) error {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	for each := a; each != nil; each = each.parent {
		if each.budget.USD > 0 {
			return &BudgetError{
				Account:  each,
				Unpriced: true,
				Reason: fmt.Sprintf("a dollar budget needs a price, and model %q has none; name it in a price file "+
					"(FIT_PRICES) or give the budget in tokens", model),
			}
		}
	}
	return nil
}

// take makes the reservation. If it must wait, it returns a channel that is closed when another
// call has ended.
func (a *Account) take(r *Reservation) (settled <-chan struct{}, err error) {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	wait := false
	for each := a; each != nil; each = each.parent {
		if r.most.within(each.room()) {
			continue
		}
		if left := each.left(); !r.least.within(left) || left.nano <= 0 || left.tokens <= 0 {
			return nil, each.empty(r.least)
		}
		wait = wait || each.running > 0
	}
	if wait {
		return a.tree.settled, nil
	}
	for each := a; each != nil; each = each.parent {
		held := lesser(r.most, each.room())
		each.held, each.running = each.held.plus(held), each.running+1
		r.parts = append(r.parts, part{each, held})
	}
	return nil, nil
}

// left returns what an account has not spent yet.
func (a *Account) left() amount {
	left := amount{unbounded, unbounded}
	if a.budget.USD > 0 {
		left.nano = int64(math.Floor(a.budget.USD*1e9)) - a.spent.nano
	}
	if a.budget.Tokens > 0 {
		left.tokens = a.budget.Tokens - a.spent.tokens
	}
	return left
}

// room returns what an account has left that is not reserved.
func (a *Account) room() amount {
	return greater(a.left().minus(a.held), amount{})
}

// empty returns the error for an account that has too little left for a call.
func (a *Account) empty(call amount) *BudgetError {
	err := &BudgetError{Account: a}
	if left := a.left(); left.tokens <= 0 || call.tokens > left.tokens {
		err.Tokens = true
		err.Reason = fmt.Sprintf("the budget of %s of %d tokens is used up: %d are spent, and the next call needs "+
			"more than is left", a.name, a.budget.Tokens, a.spent.tokens)
		return err
	}
	err.Reason = fmt.Sprintf("the budget of %s of %s is used up: %s are spent, and the next call needs more than is "+
		"left", a.name, display.Budget(a.budget.USD), display.FineDollars(float64(a.spent.nano)/1e9))
	return err
}

// Spend records the usage that the reply has reported so far, and how many bytes of it have
// arrived. A BudgetError means that the money is used up: the call must be stopped.
func (r *Reservation) Spend(usage session.TokenUsage, streamed int64) error {
	if r == nil {
		return nil
	}
	tree := r.parts[0].account.tree
	tree.mu.Lock()
	defer tree.mu.Unlock()
	if r.over {
		return nil
	}
	r.used = greater(r.used, r.amount(r.soFar(usage, streamed)))
	certain := r.used
	var gone error
	for i := range r.parts {
		part := &r.parts[i]
		if r.used.within(part.held) {
			continue
		}
		more := greater(r.used.minus(part.held), amount{})
		if room := part.account.room(); !more.within(room) {
			gone = part.account.stopped(more.tokens > room.tokens)
			certain = lesser(certain, part.held)
			continue
		}
		part.account.held, part.held = part.account.held.plus(more), part.held.plus(more)
	}
	if gone != nil { // what is only estimated is not charged beyond what the call held
		r.used = greater(certain, r.amount(usage))
	}
	return gone
}

// stopped returns the error for a call that was stopped in the middle for lack of tokens or
// dollars.
func (a *Account) stopped(tokens bool) *BudgetError {
	return &BudgetError{
		Account: a,
		Tokens:  tokens,
		Reason:  fmt.Sprintf("the budget of %s of %s was used up during a call", a.name, a.budget),
	}
}

// String writes a budget as people do.
func (b Budget) String() string {
	switch {
	case b.USD > 0 && b.Tokens > 0:
		return fmt.Sprintf("%s and %d tokens", display.Budget(b.USD), b.Tokens)
	case b.Tokens > 0:
		return fmt.Sprintf("%d tokens", b.Tokens)
	default:
		return display.Budget(b.USD)
	}
}

// amount returns the price of tokens. Tokens of a kind without a price cost what was reserved.
func (r *Reservation) amount(usage session.TokenUsage) amount {
	nano, known := r.parts[0].account.tree.cost(r.model, usage)
	if !known && r.priced {
		nano = r.most.nano
	}
	return amount{nano, usage.Total()}
}

// Settle ends the call with the usage that the reply reported; nil is a call that reported none,
// which is charged with its known usage so far. Only the first Settle counts.
func (r *Reservation) Settle(usage *session.TokenUsage) {
	if r == nil {
		return
	}
	tree := r.parts[0].account.tree
	tree.mu.Lock()
	defer tree.mu.Unlock()
	if r.over {
		return
	}
	r.over = true
	if usage != nil {
		r.used = r.amount(*usage)
	}
	for _, part := range r.parts {
		each := part.account
		each.spent, each.held = each.spent.plus(r.used), each.held.minus(part.held)
		each.running--
	}
	close(tree.settled)
	tree.settled = make(chan struct{})
}
