package agents

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	modelcalls "github.com/fit-eval/fit/internal/gateway/calls"
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
		return proxy.Join(gateway.Member{
			Name:      lane,
			Upstreams: upstreams,
			Account:   cfg.Account,
			OnCall: func(call modelcalls.Call) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.calls = append(l.calls, call)
			},
		})
	}
	return l
}

// prompt gives the agent something to do in a process of its own, and returns how often the model
// answered in full, and how often a call was refused or stopped.
func (l *limited) prompt(t *testing.T, text string) (result agent.Result, answered, refused int) {
	t.Helper()
	s, err := agent.Start(t.Context(), l.agent, l.config)
	if err != nil {
		t.Fatal(err)
	}
	result = l.ask(t, s, text)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	answered, refused = l.count(t)
	return result, answered, refused
}

// ask gives a prompt, which must at least be run.
func (l *limited) ask(t *testing.T, s agent.Session, text string) agent.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	result, err := s.Prompt(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// count returns how often the model answered in full, and how often a call was refused or stopped.
func (l *limited) count(t *testing.T) (answered, refused int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	return countCalls(t, l.calls)
}

// streamed reports whether the first answer came in a stream.
func (l *limited) streamed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[0].Stream
}

// countCalls returns how many calls were answered in full, and how many refused or stopped.
func countCalls(t *testing.T, ended []modelcalls.Call) (answered, refused int) {
	t.Helper()
	for _, call := range ended {
		switch call.Outcome {
		case modelcalls.OK:
			answered++
		case modelcalls.Budget:
			refused++
		default:
			t.Logf("call %d: %s %s", call.Seq, call.Outcome, call.Error)
		}
	}
	return answered, refused
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

// TestABudgetIsHeldByTheGateway: the budget is gone after two calls. Every agent that is told so
// ends by itself and does not try again, so none exceeds it by more than the call in flight. Those
// of the Agent Client Protocol are in test/acp.
func TestABudgetIsHeldByTheGateway(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]gateway.Budget{
		"dollars": {USD: 0.22},
		"tokens":  {Tokens: 220_000},
	} {
		t.Run(name, func(t *testing.T) {
			eachAgent(t, func(t *testing.T, a agent.Agent) {
				l := limit(t, newRig(t, a, steps(t)))
				l.config.Prices = perToken
				l.config.Account = gateway.NewAccount("this run", bound, perToken)
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
				if usd, tokens := l.config.Account.Spent(); usd > 0.22 || tokens > 220_000 {
					t.Errorf("$%.3f and %d tokens are spent", usd, tokens)
				}
				if strings.Contains(l.file("steps"), "three") {
					t.Errorf("steps taken: %q", l.file("steps"))
				}
			})
		})
	}
}

// A reply that would cost more than there is, is stopped in its middle. The next prompt is refused
// before it costs anything, and the agent does not try again.
func TestAStreamIsStoppedWhenTheMoneyIsGone(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		long := turn{"text": strings.Repeat("many words ", 15_000), "usage": turn{"input": 10, "output": 100000}}
		l := limit(t, newRig(t, a, scriptOf(t, long, long)))
		l.config.Prices = perToken
		l.config.Account, l.config.OneShot = gateway.NewAccount("this run", gateway.Budget{USD: 0.002}, perToken), false
		s, err := agent.Start(t.Context(), a, l.config)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		result := l.ask(t, s, "Talk")
		answered, before := l.count(t)
		if answered == 1 && !l.streamed() {
			return // what does not come in a stream has no middle
		}
		if result.Success || result.Outcome != session.OutcomeBudget {
			t.Errorf("success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
		}
		if answered != 0 || before == 0 || before > 2 {
			t.Errorf("the model answered %d times in full; %d calls were refused or stopped", answered, before)
		}
		again := l.ask(t, s, "Talk on")
		var empty *gateway.BudgetError
		if again.Success || again.Outcome != session.OutcomeBudget || !errors.As(again.Err, &empty) {
			t.Errorf("again: success %v, outcome %q, error %v", again.Success, again.Outcome, again.Err)
		}
		if answered, refused := l.count(t); answered != 0 || refused != before+1 {
			t.Errorf("again: the model answered %d times in full; %d calls were refused", answered, refused-before)
		}
	})
}
