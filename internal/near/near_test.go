package near

import "testing"

func TestQuestion(t *testing.T) {
	known := []string{"claude-code", "codex", "codex-acp", "gemini", "env", "timeouts", "family", "format"}
	for typed, want := range map[string]string{
		"claude":  "; did you mean claude-code?", // the only one that begins with it
		"co":      "",                            // two begin with it
		"cdoex":   "; did you mean codex?",
		"Codex":   "; did you mean codex?",
		"timeout": "; did you mean timeouts?",
		"familly": "; did you mean family?",
		"emv":     "; did you mean env?",
		"abc":     "", // short words need more than two letters in common
		"":        "",
		"zzzzzz":  "",
	} {
		t.Run(typed, func(t *testing.T) {
			if got := Question(typed, known); got != want {
				t.Errorf("Question(%q) = %q, want %q", typed, got, want)
			}
		})
	}
	if got := Word("cla", known); got != "" {
		t.Errorf("Word takes a beginning for %q", got)
	}
}
