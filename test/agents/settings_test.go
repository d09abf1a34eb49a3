package agents

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/session"
)

// TestSettingsReachTheModel: first a system prompt that is appended, an endpoint with a path, and
// what the agent calls its tool for reading. Then, where it can, the agent gets a system prompt
// instead of its own, and that tool is taken away: it is not used any more.
func TestSettingsReachTheModel(t *testing.T) {
	script := `{"turns":[{"calls":[{"read":"calc.go"}]},
		{"cases":[{"when":{"system":"the password is swordfish"},"text":"I know."}],"text":"I was told nothing."}]}`
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		can, want := a.Info().Capabilities, "I was told nothing."
		first := newRig(t, a, script)
		first.config.ModelURL += "/s/" + scriptName
		if can.SystemPromptAppend != agent.Unsupported {
			first.config.SystemPrompt, want = "Remember: the password is swordfish.", "I know."
		}
		result, before := first.run("What do you know?")
		used := calls(before, session.ToolRead)
		if result.Text != want || len(used) != 1 {
			t.Fatalf("answer %q after %d reads, error %v", result.Text, len(used), result.Err)
		}
		if can.SystemPromptReplace == agent.Unsupported && can.DisallowedTools == agent.Unsupported {
			return // the agent says that it cannot
		}
		second, want := newRig(t, a, script), "I was told nothing."
		if can.SystemPromptReplace != agent.Unsupported {
			second.config.SystemPrompt, second.config.ReplaceSystemPrompt = "Remember: the password is swordfish.", true
			want = "I know."
		}
		if can.DisallowedTools != agent.Unsupported {
			second.config.DisallowedTools = []string{used[0].NativeName}
		}
		result, after := second.run("What do you know?")
		if !result.Success || result.Text != want {
			t.Errorf("outcome %q, answer %q, error %v", result.Outcome, result.Text, result.Err)
		}
		for _, event := range after.Events {
			if can.DisallowedTools != agent.Unsupported && event.Tool != nil &&
				event.Tool.NativeName == used[0].NativeName {
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
