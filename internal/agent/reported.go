package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// reported pays for sessions whose model calls do not pass the gateway: those of a login that only
// the agent's own service takes, and of agents that cannot be pointed at another endpoint. It is
// the one place that limits them. They are charged what they report while they work, so unlike
// others they pass a limit by what they use between two reports.
type reported struct {
	account *gateway.Account

	mu   sync.Mutex
	tab  *gateway.Tab // nil: no prompt is running
	stop context.CancelCauseFunc
}

// checkLimits refuses a limit for a session whose model calls neither pass the gateway nor are
// reported.
func checkLimits(a Agent, cfg Config) error {
	info := a.Info()
	for _, limit := range []struct {
		name  string
		asked bool
		have  Support
	}{
		{"turn limit", cfg.MaxTurns > 0, info.Capabilities.MaxTurns},
		{"budget", cfg.Account.Budget() != gateway.Budget{}, info.Capabilities.Usage},
	} {
		if !limit.asked || limit.have != Unsupported {
			continue
		}
		if past := WithoutGateway(a, cfg); past != "" {
			return Refuse(info.ID, "agent %s does not support a %s: it does not report what it uses, and its model "+
				"calls do not pass the gateway (%s)", info.ID, limit.name, past)
		}
	}
	return nil
}

// consumed charges what the running prompt has consumed so far, and stops it if nothing is left.
func (r *reported) consumed(used session.TokenUsage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tab == nil {
		return
	}
	if err := r.tab.Report(used.CostUSD, used.TotalTokens); err != nil {
		r.stop(err)
	}
}

func (r *reported) set(tab *gateway.Tab, stop context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tab, r.stop = tab, stop
}

// pay runs a prompt. If a limit was reached in it, that is how it ended, unless the agent was done.
func (r *reported) pay(ctx context.Context, prompt func(context.Context) (Result, error)) (Result, error) {
	if err := r.account.Empty(); err != nil {
		return Result{Outcome: session.OutcomeBudget, Err: err}, nil
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.set(r.account.Tab(), stop)
	result, err := prompt(ctx)
	cause := context.Cause(ctx)
	r.consumed(result.Usage)
	r.set(nil, nil)
	if _, empty := errors.AsType[*gateway.BudgetError](cause); empty && err == nil && !result.Success {
		result.Outcome, result.Err, result.Aborted = session.OutcomeBudget, cause, false
	}
	return result, err
}
