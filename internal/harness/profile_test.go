package harness_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/profile"
)

// members starts a facilitated session and returns the configs that the agents were made from.
func members(t *testing.T, cfg harness.FacilitatorConfig) map[string]harness.AgentConfig {
	t.Helper()
	got := map[string]harness.AgentConfig{}
	players := cast{}
	for _, c := range cfg.AgentConfigs {
		players[c.Name] = answerAll("x")
	}
	players["facilitator"] = askEverybodyThenConclude
	cfg.Output = &buffer{}
	cfg.Options.BatchWindow = time.Millisecond
	cfg.NewAgent = func(c harness.AgentConfig) (agent.Agent, error) {
		got[c.Name] = c
		return players.query(c)
	}
	f, err := harness.NewFacilitator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := f.Run(t.Context(), "go"); err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	return got
}

func TestSystemPromptsAreComposed(t *testing.T) {
	dir := t.TempDir()
	agents := filepath.Join(dir, ".claude", "agents")
	if err := os.MkdirAll(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	alicesProfile := "---\ndescription: Explores.\nagent: codex\nmodel: small\ncwd: sub\n---\nI am Alice.\n\n## Session Protocol\n\nKnock first.\n"
	if err := os.WriteFile(filepath.Join(agents, "alice.md"), []byte(alicesProfile), 0o600); err != nil {
		t.Fatal(err)
	}
	got := members(t, harness.FacilitatorConfig{
		FacilitatorCwd: dir, FacilitatorProfile: "alice",
		AgentConfigs: []harness.AgentConfig{
			{Name: "alice", AgentProfile: "alice", Amend: "Be brief.", Model: "large"},
			{Name: "bob"},
		},
	})
	lead, alice, bob := got["facilitator"], got["alice"], got["bob"]
	if !lead.System.Replace || lead.Role != "facilitator" ||
		!strings.HasPrefix(lead.System.Text,
			"<agent_profile>\nI am Alice.\n</agent_profile>\n\n<session_protocol>\n"+
				profile.Text("facilitator")) {
		t.Errorf("lead: %+v", lead.System)
	}
	want := "<agent_profile>\nI am Alice.\n</agent_profile>\n\n<session_protocol>\n" +
		profile.Text("facilitated-agent") + "\n\nKnock first.\n\nBe brief.\n</session_protocol>"
	if diff := cmp.Diff(want, alice.System.Text); diff != "" || alice.System.Replace {
		t.Error(diff)
	}
	if alice.Role != "Explores." || alice.Agent != "codex" || alice.Model != "large" ||
		alice.Cwd != filepath.Join(dir, "sub") {
		t.Errorf("alice: %+v", alice)
	}
	if bob.System.Text != "<session_protocol>\n"+profile.Text("facilitated-agent")+"\n</session_protocol>" ||
		bob.Cwd != dir {
		t.Errorf("bob: %q in %s", bob.System.Text, bob.Cwd)
	}
	if diff := cmp.Diff([]string{"Read", "Glob", "Grep"}, lead.Tools); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Bash", "Agent", "Task", "TaskOutput", "TaskStop", "Write", "Edit"},
		lead.DisallowedTools); diff != "" {
		t.Error(diff)
	}
	if len(bob.DisallowedTools) != 0 {
		t.Errorf("participants are denied nothing, bob is denied %v", bob.DisallowedTools)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"P14D": 14 * 24 * time.Hour, "PT12H": 12 * time.Hour,
		"P1DT6H": 30 * time.Hour, "PT30M": 30 * time.Minute, "PT45S": 45 * time.Second,
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := harness.ParseDuration(text); err != nil || got != want {
				t.Errorf("%s: %v, %v", text, got, err)
			}
		})
	}
	for _, text := range []string{
		"", "P", "PT", "14D", "P1Y", "P1M", "PT1.5H", "pt1h", "P1D ", "PT0S",
		"P99999999999999D", "P1DT",
	} {
		if got, err := harness.ParseDuration(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}
