package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// ending describes how the session of an agent, or of an agent and its lead, ended.
type ending struct {
	reason  session.Outcome
	err     error // why it did not succeed
	aborted bool
	turns   int // that models completed
}

func (e ending) cause() error {
	if e.err == nil {
		return errors.New(string(e.reason))
	}
	return e.err
}

// agentEnded separates missing data from an agent that did badly. An agent whose model never
// completed a turn has not been measured, whatever the reason: the agent could not influence it.
// How it handles deliberate faults is measured.
func (a *attempt) agentEnded(ctx context.Context, end ending, err error) bool {
	empty := a.budgetError()
	if a.prepared.Faults != "" && end.reason == session.OutcomeProvider {
		end.reason = session.OutcomeError // a deliberate fault: how the agent handles it is measured
	}
	said := end.reason == session.OutcomeAuth || end.reason == session.OutcomeProvider
	seen, troubled := a.seenByGateway()
	lost := a.anySeat((*gateway.Seat).Lost)
	if said && seen && !troubled && !lost && a.couldForge(end) {
		said, end.reason = false, session.OutcomeError
		end.err = fmt.Errorf("the agent reported an error of the model's service that the gateway does not confirm: %w",
			end.cause())
	}
	switch {
	case ctx.Err() != nil:
		a.fail(ctx, ledger.ErrorInterrupted, context.Cause(ctx))
	case empty != nil && end.reason != session.OutcomeSuccess:
		a.record.BudgetOf = ledger.BudgetArm
		if empty.Account == a.experimentAccount {
			a.record.BudgetOf = ledger.BudgetExperiment
		}
		a.fail(ctx, ledger.ErrorBudget, fmt.Errorf("%w%s", empty, experiment.LargerBudget))
	case errors.As(err, new(*agent.AuthError)):
		a.fail(ctx, ledger.ErrorAuth, err)
	case errors.Is(err, sandbox.ErrBroken):
		a.fail(ctx, ledger.ErrorSandbox, err)
	case err != nil:
		a.fail(ctx, ledger.ErrorAgentStart, err)
	case said && !troubled && a.couldForge(end):
		a.record.Unverified = 1
		a.fail(ctx, ledger.ErrorProvider, end.cause())
	case end.reason == session.OutcomeAuth:
		a.fail(ctx, ledger.ErrorAuth, end.cause())
	case end.reason == session.OutcomeProvider:
		a.fail(ctx, ledger.ErrorProvider, end.cause())
	case end.reason == session.OutcomeError && (troubled || lost) && a.prepared.Faults == "":
		if lost && a.couldForge(end) { // it can ask for a model that does not exist
			a.record.Unverified = 1
		}
		a.fail(ctx, ledger.ErrorProvider, end.cause())
	case errors.Is(end.err, sandbox.ErrBroken):
		a.fail(ctx, ledger.ErrorSandbox, end.err)
	case end.reason == session.OutcomeTimeout && end.turns > 0 && a.unanswered() > 0 && a.prepared.Faults == "":
		a.record.Unverified = 1 // an agent can make a slow request
		a.fail(ctx, ledger.ErrorProvider, fmt.Errorf("the model's service did not answer the last call within %s: %w",
			a.unanswered().Round(time.Millisecond), end.cause()))
	case (end.turns == 0 || errors.Is(end.err, agent.ErrNoModelWork)) && !a.anySeat((*gateway.Seat).Spoiled):
		a.fail(ctx, ledger.ErrorAgentStart, fmt.Errorf("no turn of the model was completed: %w", end.cause()))
	default:
		if end.reason != session.OutcomeSuccess && a.record.AgentError == nil {
			a.record.AgentError = &ledger.AgentError{
				Message: a.kept(end.cause().Error()),
				Aborted: end.aborted,
			}
		}
		return true
	}
	return false
}

// couldForge reports whether an agent could have forged the error that ended it. The output of an
// agent in its own process is trusted; but once its model has completed a turn, the commands it
// runs may print in its name. The built-in agent talks to the model itself.
func (a *attempt) couldForge(end ending) bool {
	own := a.machine.installation(a.arm.Agent).Path != "" ||
		a.arm.Lead != "" && a.machine.installation(a.arm.Lead).Path != ""
	return own && end.turns > 0
}

// seenByGateway reports whether the gateway has seen calls of the attempt's agents, and whether the
// service failed the last call of one of them.
func (a *attempt) seenByGateway() (seen, troubled bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seat := range a.seats {
		seen = seen || seat.Wire().Count() > 0
		troubled = troubled || seat.Troubled()
	}
	return seen, troubled
}

// unanswered returns how long the last call of an agent waited for its model without an answer;
// zero unless it was more than half of the agent's time.
func (a *attempt) unanswered() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var longest time.Duration
	for _, seat := range a.seats {
		longest = max(longest, seat.Unanswered())
	}
	if longest <= a.agentTimeout(a.task.Settings.Timeouts.Agent)/2 {
		return 0
	}
	return longest
}

// anySeat reports whether something holds for one of the attempt's agents at the gateway.
func (a *attempt) anySeat(holds func(*gateway.Seat) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.seats, holds)
}
