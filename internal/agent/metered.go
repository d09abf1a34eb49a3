package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// afterLimit is how long an agent may take to end by itself when the gateway has refused it a call.
const afterLimit = 10 * time.Second

// metered runs a prompt of a session whose model calls the gateway meters. Consumption is what the
// gateway saw, if it saw it. If a limit was reached, that is how the prompt ended, whatever the
// agent makes of the refused call.
func (s seated) metered(ctx context.Context, prompt func(context.Context) (Result, error)) (Result, error) {
	first, answered := s.seat.Wire().Count(), s.seat.Wire().Answered()
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
	// What failed has its own reason.
	if past := result.Turns - (s.seat.Wire().Answered() - answered); s.showsTurns && past > 0 && result.Success {
		result.Success, result.Outcome, result.Err = false, session.OutcomeError, &bypassError{Calls: past}
	}
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

// bypassError says that an agent talked to its model by another way than the gateway.
type bypassError struct{ Calls int }

func (e *bypassError) Error() string {
	return fmt.Sprintf("the agent made %d model calls that did not pass the gateway; what its project brings may have "+
		"moved them (--context none), and --network model leaves no other way", e.Calls)
}
