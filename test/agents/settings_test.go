package agents

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// password is a system prompt, and sayPassword a turn that says whether the model has got it.
const (
	password  = "Remember: the password is swordfish."
	knowledge = "I know."
	ignorance = "I was told nothing."
)

var sayPassword = turn{
	"cases": []turn{{"when": turn{"system": "the password is swordfish"}, "text": knowledge}}, "text": ignorance,
}

// checkWithout: where it can, the agent has to do without a tool for reading: it is not used any
// more. What a judge must not use is in test/teams, for every agent.
func checkWithout(t *testing.T, a agent.Agent, tool string) {
	t.Helper()
	if a.Info().Capabilities.DisallowedTools == agent.Unsupported {
		return // the agent says that it cannot
	}
	r := newRig(t, a, scriptOf(t, turn{"calls": []turn{call("read", "calc.go")}}, turn{"text": "Done."}))
	r.config.DisallowedTools = []string{tool}
	result, after := r.run("Read it")
	if !result.Success || result.Text != "Done." {
		t.Errorf("outcome %q, answer %q, error %v", result.Outcome, result.Text, result.Err)
	}
	for _, event := range after.Events {
		if event.Tool != nil && event.Tool.NativeName == tool {
			t.Errorf("%s was used", tool)
		}
	}
}

// TestBudget: without a gateway, fit holds a budget by what the agent reports.
func TestBudget(t *testing.T) {
	eachAgentThat(t, oneOfEach, func(t *testing.T, a agent.Agent) {
		var turns []turn
		for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
			turns = append(turns, turn{
				"calls": []turn{call("bash", "echo "+name+" >> steps")},
				"usage": turn{"input": 100000, "output": 10000},
			})
		}
		r := newRig(t, a, scriptOf(t, turns...))
		r.config.Prices = perToken
		r.config.Gateway = agent.Gateway{}
		r.config.Account = gateway.NewAccount("this run", gateway.Budget{USD: 0.05}, perToken)
		r.config.OneShot = false
		s, err := agent.Start(t.Context(), a, r.config)
		if err != nil && strings.Contains(err.Error(), "price") {
			return // refused before anything is spent, because nobody knows what the model costs
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		result, err := s.Prompt(ctx, "Spend")
		if err != nil && strings.Contains(err.Error(), "price") {
			return
		}
		if err != nil || result.Success || result.Outcome != session.OutcomeBudget {
			t.Errorf("success %v, outcome %q, errors %v, %v", result.Success, result.Outcome, result.Err, err)
		}
		if strings.Contains(r.file("steps"), "four") {
			t.Errorf("steps taken: %q", r.file("steps"))
		}
	})
}
