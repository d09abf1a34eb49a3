package agents

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway"
	modelcalls "github.com/fit-eval/fit/gateway/calls"
	"github.com/fit-eval/fit/session"
)

// limited is a rig whose gateway holds the limits of the config.
type limited struct {
	*rig
	mu    sync.Mutex
	calls []modelcalls.Call
}

// limit sends the calls of a rig through a gateway with an account.
func limit(t *testing.T, r *rig) *limited {
	t.Helper()
	l := &limited{rig: r}
	proxy := &gateway.OnDemand{}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	r.config.Gateway.Join = func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		budget := gateway.Budget{USD: cfg.MaxCostUSD, Tokens: cfg.MaxTokens}
		return proxy.Join(gateway.Member{
			Name:      lane,
			Upstreams: upstreams,
			Account:   gateway.NewAccount("this run", budget, cfg.Prices),
			OnCall: func(call modelcalls.Call) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.calls = append(l.calls, call)
			},
		})
	}
	return l
}

// prompt gives the agent something to do, and returns how often the model answered in full, and how
// often a call was refused or stopped.
func (l *limited) prompt(t *testing.T, text string) (result agent.Result, answered, refused int) {
	t.Helper()
	s, err := agent.Start(t.Context(), l.agent, l.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	result, err = s.Prompt(ctx, text)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, call := range l.calls {
		switch call.Outcome {
		case modelcalls.OK:
			answered++
		case modelcalls.Budget:
			refused++
		default:
			t.Logf("call %d: %s %s", call.Seq, call.Outcome, call.Error)
		}
	}
	return result, answered, refused
}

// steps is a script that takes one step after the other, each of which consumes 110,000 tokens.
func steps(t *testing.T) string {
	var turns []turn
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		turns = append(turns, turn{
			"calls": []turn{call("bash", "echo "+name+" >> steps")},
			"usage": turn{"input": 100000, "output": 10000},
		})
	}
	return scriptOf(t, turns...)
}

func perToken(_ string, u session.TokenUsage, _ int64) (float64, bool) {
	return float64(u.TotalTokens) * 1e-6, true
}

// The money is gone after two calls. An agent that is told so ends by itself and does not try
// again.
func TestABudgetIsHeldByTheGateway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bound func(*agent.Config)
		by    func(agent.Info) bool
	}{
		"dollars": {func(cfg *agent.Config) { cfg.MaxCostUSD = 0.22 }, func(agent.Info) bool { return true }},
		"tokens":  {func(cfg *agent.Config) { cfg.MaxTokens = 220_000 }, quick},
	} {
		t.Run(name, func(t *testing.T) {
			eachAgentThat(t, test.by, func(t *testing.T, a agent.Agent) {
				l := limit(t, newRig(t, a, steps(t)))
				l.config.Prices = perToken
				test.bound(&l.config)
				result, answered, refused := l.prompt(t, "Spend")
				if result.Success || result.Outcome != session.OutcomeBudget || result.Aborted {
					t.Errorf("success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
				}
				var empty *gateway.BudgetError
				if !errors.As(result.Err, &empty) {
					t.Errorf("error %v", result.Err)
				}
				if answered != 2 || refused != 1 {
					t.Errorf("the model answered %d times, want 2; %d calls were refused, want 1", answered, refused)
				}
				if strings.Contains(l.file("steps"), "three") {
					t.Errorf("steps taken: %q", l.file("steps"))
				}
			})
		})
	}
}

// A reply that would cost more than there is, is stopped in its middle.
func TestAStreamIsStoppedWhenTheMoneyIsGone(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		long := turn{"text": strings.Repeat("many words ", 15_000), "usage": turn{"input": 10, "output": 100000}}
		l := limit(t, newRig(t, a, scriptOf(t, long)))
		l.config.Prices = perToken
		l.config.MaxCostUSD = 0.002
		result, answered, refused := l.prompt(t, "Talk")
		if len(l.calls) == 1 && !l.calls[0].Stream {
			return // what does not come in a stream has no middle
		}
		if result.Success || result.Outcome != session.OutcomeBudget {
			t.Errorf("success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
		}
		if answered != 0 || refused == 0 || refused > 2 {
			t.Errorf("the model answered %d times in full; %d calls were refused or stopped", answered, refused)
		}
	})
}

// Nothing is asked after the last turn that is allowed.
func TestTurnsAreCountedExactly(t *testing.T) {
	counted := func(info agent.Info) bool { return info.Capabilities.MaxTurns == agent.Enforced }
	eachAgentThat(t, counted, func(t *testing.T, a agent.Agent) {
		l := limit(t, newRig(t, a, steps(t)))
		l.config.MaxTurns = 3
		result, answered, refused := l.prompt(t, "Go on")
		if result.Success || result.Outcome != session.OutcomeMaxTurns || result.Turns != 3 {
			t.Errorf("success %v, outcome %q after %d turns, error %v", result.Success, result.Outcome, result.Turns,
				result.Err)
		}
		if answered != 3 || refused != 1 {
			t.Errorf("the model answered %d times, want 3; %d calls were refused, want 1", answered, refused)
		}
		if got := strings.Fields(l.file("steps")); len(got) != 3 {
			t.Errorf("steps taken: %q", got)
		}
	})
}
