package agents

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/session"
)

func TestSystemPromptReachesTheModel(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]bool{"appended": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			eachAgent(t, func(t *testing.T, a agent.Agent) {
				support := a.Info().Capabilities.SystemPromptAppend
				if replace {
					support = a.Info().Capabilities.SystemPromptReplace
				}
				if support == agent.Unsupported {
					t.Skip("the agent says that it cannot")
				}
				r := newRig(t, a, `{"turns":[{"cases":[{"when":{"system":"the password is swordfish"},"text":"I know."}],"text":"I was told nothing."}]}`)
				r.config.SystemPrompt, r.config.ReplaceSystemPrompt = "Remember: the password is swordfish.", replace
				if result, _ := r.run("What do you know?"); result.Text != "I know." {
					t.Errorf("answer %q, error %v", result.Text, result.Err)
				}
			})
		})
	}
}

// TestDisallowedToolsAreGone finds out what the agent calls its tool for reading, takes it away,
// and looks whether it is still used.
func TestDisallowedToolsAreGone(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		if a.Info().Capabilities.DisallowedTools == agent.Unsupported {
			t.Skip("the agent says that it cannot")
		}
		script := scriptOf(t, turn{"calls": []turn{call("read", "calc.go")}}, turn{"text": "Read."})
		_, before := newRig(t, a, script).run("Read it")
		used := calls(before, session.ToolRead)
		if len(used) != 1 {
			t.Fatalf("%d reads", len(used))
		}
		r := newRig(t, a, script)
		r.config.DisallowedTools = []string{used[0].NativeName}
		result, after := r.run("Read it")
		if !result.Success {
			t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
		}
		for _, event := range after.Events {
			if event.Tool != nil && event.Tool.NativeName == used[0].NativeName {
				t.Errorf("%s was used", used[0].NativeName)
			}
		}
	})
}

func TestBudget(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		support := a.Info().Capabilities.BudgetUSD
		if support == agent.Unsupported {
			t.Skip("the agent says that it cannot")
		}
		var turns []turn
		for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
			turns = append(turns, turn{
				"calls": []turn{call("bash", "echo "+name+" >> steps")},
				"usage": turn{"input": 100000, "output": 10000},
			})
		}
		r := newRig(t, a, scriptOf(t, turns...))
		r.config.MaxCostUSD = 0.05
		r.config.Prices = func(_ string, u session.TokenUsage, _ int64) (float64, bool) {
			return float64(u.TotalTokens) * 1e-6, true
		}
		r.config.OneShot = support == agent.Native
		s, err := a.Start(t.Context(), r.config)
		if err != nil && strings.Contains(err.Error(), "price") {
			return // refused before anything is spent, because nobody knows what the model costs
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

func TestAnEndpointWithAPath(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t, turn{"text": "Here."}))
		r.config.ModelURL += "/s/" + scriptName
		if result, _ := r.run("Where are you?"); result.Text != "Here." {
			t.Errorf("answer %q, error %v", result.Text, result.Err)
		}
	})
}
