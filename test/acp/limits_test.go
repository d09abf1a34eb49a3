package acp

import (
	"errors"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// callTokens is what every call of the model in TestLimitsHold consumes.
const callTokens = 110_000

func perToken(_ string, u session.TokenUsage, _ int64) (float64, bool) {
	return float64(u.TotalTokens) * 1e-6, true
}

// TestLimitsHold: every agent can be given a limit of dollars, tokens and turns, whatever it
// reports about itself, and passes it by no more than the one call in flight.
func TestLimitsHold(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		for name, test := range map[string]struct {
			budget  gateway.Budget
			turns   int
			outcome session.Outcome
		}{
			"dollars": {gateway.Budget{USD: 0.3}, 0, session.OutcomeBudget},
			"tokens":  {gateway.Budget{Tokens: 300_000}, 0, session.OutcomeBudget},
			"turns":   {gateway.Budget{}, 2, session.OutcomeMaxTurns},
		} {
			t.Run(name, func(t *testing.T) {
				s := newScripted(t, a, steps())
				show(t, s)
				account := gateway.NewAccount("this run", test.budget, perToken)
				s.Config.Prices, s.Config.Account, s.Config.MaxTurns = perToken, account, test.turns
				proxy := &gateway.OnDemand{}
				t.Cleanup(func() { _ = proxy.Close() })
				s.Config.Gateway.Join = func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
					return proxy.Join(gateway.Member{Name: "worker", Upstreams: upstreams, Account: cfg.Account})
				}
				if err := agent.Check(a, s.Config); err != nil {
					t.Fatal(err)
				}
				result := s.Prompt(t.Context(), s.Start(), "Take every step")
				if result.Success || result.Outcome != test.outcome {
					t.Errorf("success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
				}
				var empty *gateway.BudgetError
				if test.turns == 0 && !errors.As(result.Err, &empty) {
					t.Errorf("error %v", result.Err)
				}
				usd, tokens := account.Spent()
				if test.turns == 0 && (tokens > 300_000+callTokens || usd > 0.3+callTokens*1e-6+1e-6) {
					t.Errorf("$%.2f and %d tokens are spent", usd, tokens)
				}
				if taken := s.File("steps"); taken == "" || strings.Contains(taken, "four") {
					t.Errorf("steps taken: %q", taken)
				}
			})
		}
	})
}

// steps is a model that takes one step after the other.
func steps() turn {
	var turns []turn
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		turns = append(turns, agenttest.Bash("echo "+name+" >> steps"))
	}
	return turn{"usage": turn{"input": 100_000, "output": 10_000}, "turns": turns}
}
