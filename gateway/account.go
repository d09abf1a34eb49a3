package gateway

import "github.com/fit-eval/fit/gateway/calls"

// Account is a budget that calls are paid from.
type Account struct{}

// Estimate is a call that is about to start.
type Estimate struct {
	Model    string
	Protocol string
	Body     []byte
	Turn     bool // the call carries a turn of the agent
}

// Reserve sets aside what a call can cost at most.
func (a *Account) Reserve(Estimate) (*Reservation, error) { return nil, nil }

// Reservation is what was set aside for one call.
type Reservation struct{}

// Spend takes notice of what a running call has consumed; an error stops it.
func (r *Reservation) Spend(calls.Usage, int64) error { return nil }

// Settle ends the reservation with what the call has consumed; nil is unknown.
func (r *Reservation) Settle(*calls.Usage) {}

// BudgetError says that a call would exceed a budget.
type BudgetError struct{ Reason string }

func (e *BudgetError) Error() string { return e.Reason }
