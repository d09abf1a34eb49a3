package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fit-eval/fit/gateway"
	"github.com/fit-eval/fit/session"
)

// afterLimit is how long an agent may take to end by itself when the gateway has refused it a call.
const afterLimit = 10 * time.Second

// metered runs a prompt of a session whose model calls the gateway meters. What it consumed is what
// the wire says, where the wire says it. A limit that was reached is how the prompt ended, whatever
// the agent makes of the call that it was refused.
func (s seated) metered(ctx context.Context, prompt func(context.Context) (Result, error)) (Result, error) {
	first := s.seat.Wire().Count()
	reached := s.seat.Begin(s.maxTurns)
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	over := make(chan struct{})
	watching.Go(func() {
		select {
		case <-reached:
		case <-over:
			return
		}
		timer := time.NewTimer(afterLimit)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(s.seat.Limit())
		case <-over:
		}
	})
	result, err := prompt(ctx)
	close(over)
	watching.Wait()
	cancel(nil)
	s.seat.Settle()
	result.Usage = s.seat.Wire().Usage(first, result.Usage)
	limit := s.seat.Limit()
	var budget *gateway.BudgetError
	unpriced := errors.As(limit, &budget) && budget.Unpriced
	if limit != nil && err == nil && (!result.Success || unpriced) &&
		(!result.Aborted || errors.Is(context.Cause(ctx), limit)) {
		result.Success, result.Outcome, result.Err, result.Aborted = false, session.OutcomeBudget, limit, false
		if errors.Is(limit, gateway.ErrTurnLimit) {
			result.Outcome, result.Err = session.OutcomeMaxTurns, nil
		}
	}
	return result, err
}
