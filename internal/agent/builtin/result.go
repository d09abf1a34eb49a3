package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/session"
)

func (s *turnState) fail(err error) {
	s.subtype, s.err = resultSuccess, err // the dialect calls a failed model call a success with is_error
	if failure, ok := errors.AsType[*model.Error](err); ok {
		if failure.Status != 0 {
			s.status = &failure.Status
		}
		return
	}
	s.subtype = resultExecution
}

// finish writes the closing event and returns the same to the caller.
func (c *conversation) finish(ctx context.Context, state *turnState) agent.Result {
	event := resultEvent{
		Type:           "result",
		Subtype:        state.subtype,
		IsError:        state.err != nil || state.subtype != resultSuccess,
		Result:         state.text,
		APIErrorStatus: state.status,
		NumTurns:       state.turns,
		DurationMs:     time.Since(state.begin).Milliseconds(),
		Usage:          usageJSON(state.usage),
		SessionID:      c.id,
		UUID:           rand.Text(),
		TerminalReason: "completed",
	}
	event.TotalCostUSD = state.knownCost()
	event.ModelUsage = map[string]modelUsageJSON{c.endpoint.model: modelUsageJSON(state.tokenUsage())}
	if state.err != nil {
		event.Errors = []string{state.err.Error()}
		if state.subtype == resultSuccess {
			event.Result = state.err.Error()
		}
	}
	outcome := c.outcome(ctx, state)
	event.TerminalReason = terminalReasons[outcome]
	c.emit(event)
	return agent.Result{
		Success:   outcome == session.OutcomeSuccess,
		Outcome:   outcome,
		Text:      state.text,
		SessionID: c.id,
		Err:       state.err,
		Aborted:   outcome == session.OutcomeCancelled || outcome == session.OutcomeTimeout,
		Turns:     state.turns,
		Usage:     state.tokenUsage(),
		Output:    c.output(state),
	}
}

var terminalReasons = map[session.Outcome]string{
	session.OutcomeSuccess: "completed", session.OutcomeMaxTurns: "max_turns",
	session.OutcomeBudget:    "budget_exhausted",
	session.OutcomeCancelled: "aborted_tools", session.OutcomeTimeout: "aborted_tools",
	session.OutcomeAuth: "api_error", session.OutcomeError: "api_error", session.OutcomeProvider: "api_error",
}

func (c *conversation) outcome(ctx context.Context, state *turnState) session.Outcome {
	var failure *model.Error
	switch {
	case state.subtype == resultMaxTurns:
		return session.OutcomeMaxTurns
	case state.subtype == resultBudget:
		return session.OutcomeBudget
	case state.err == nil:
		return session.OutcomeSuccess
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return session.OutcomeTimeout
	case ctx.Err() != nil:
		return session.OutcomeCancelled
	case errors.As(state.err, &failure):
		return outcomeOf(failure.Kind)
	default:
		return session.OutcomeError
	}
}

// outcomeOf distinguishes failures of the model's service, which say nothing about the agent, from
// those that the conversation itself caused.
func outcomeOf(kind model.Kind) session.Outcome {
	switch kind {
	case model.KindAuth, model.KindQuota:
		return session.OutcomeAuth
	case model.KindRateLimit, model.KindOverloaded, model.KindServer, model.KindNetwork, model.KindProtocol:
		return session.OutcomeProvider
	case model.KindContextOverflow, model.KindRefusal, model.KindInvalidRequest:
		return session.OutcomeError
	default:
		return session.OutcomeError
	}
}

// knownCost returns the cost of the prompt; nil is unknown.
func (s *turnState) knownCost() *float64 {
	if !s.priced {
		return nil
	}
	return new(s.cost)
}

func (s *turnState) tokenUsage() session.TokenUsage {
	usage := s.usage
	usage.CostUSD, usage.CostSource = s.knownCost(), session.CostComputed
	if usage.CostUSD == nil {
		usage.CostSource = session.CostUnknown
	}
	return usage
}

func (c *conversation) output(state *turnState) agent.RawAgentOutput {
	return agent.RawAgentOutput{
		Agent:         c.agent.id(),
		StartMs:       state.begin.UnixMilli(),
		EndMs:         time.Now().UnixMilli(),
		Argv:          []string{},
		Version:       buildVersion(),
		DiskJSONLPath: c.store.path(c.id),
	}
}
