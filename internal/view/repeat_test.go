package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/experiment"
)

// The command that repeats an experiment brings what its arms brought.
func TestTheCommandOfAnArmIsReadAsTheArm(t *testing.T) {
	degree := 0.2
	for _, arm := range []experiment.Arm{
		{Name: "before", Agent: "codex"},
		{
			Name:         "after",
			Agent:        "codex",
			Model:        "gpt-5",
			Skills:       "skills/a+skills/b",
			Context:      "project",
			Instructions: "AGENTS.md",
			Files:        "overlay",
			MCP:          "servers.json",
			Settings:     "config.toml",
			Effort:       "high",
			Temperature:  &degree,
			Prompt:       `Be careful, model: "slow" \ steady @home.`,
			AllowedTools: []string{"Bash", "Edit"},
			MaxTurns:     7,
			Auth:         "apikey",
			Lead:         "claude-code",
			LeadModel:    "opus",
		},
	} {
		read, err := experiment.ParseArm(armFlag(&arm), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(arm, read); diff != "" {
			t.Errorf("%s: %s", armFlag(&arm), diff)
		}
	}
}
