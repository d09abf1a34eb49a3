package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report"
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
			ModelURL:     "http://127.0.0.1:8080/{cell}",
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

// The command that repeats an experiment names its endpoint, and no secret in the address.
func TestTheCommandHasNoSecret(t *testing.T) {
	arm := experiment.Arm{Name: "a", Agent: "codex", ModelURL: "https://me:secret@model.example/api?key=secret"}
	if got := armFlag(&arm); got != "a=agent:codex,modelUrl:https://model.example/api" {
		t.Error(got)
	}
}

// The command that repeats an experiment has the limits and the sandbox of the plan.
func TestTheCommandRepeatsTheConditions(t *testing.T) {
	plan := &experiment.Plan{
		Family:      experiment.PlannedFamily{Origin: "my tasks"},
		Runs:        3,
		Seed:        7,
		Isolation:   "bwrap",
		Network:     "model",
		Concurrency: 2,
		Cell:        experiment.Budget{USD: 0.5, Tokens: 9000, Wall: time.Minute},

		AgentTimeoutMs: 90_000,
	}
	last := &experiment.Process{Budgets: experiment.Budgets{
		Arm:        experiment.Budget{Tokens: 700},
		Experiment: experiment.Budget{USD: 2, Wall: time.Hour},
	}}
	const want = "fit-benchmark run --family 'my tasks' --runs 3 --seed 7 --isolation bwrap --network model " +
		"--concurrency 2 --timeout 1m30s --max-cost-usd 2 --max-time 1h0m0s --arm-max-tokens 700 --cell-max-cost-usd 0.5 --cell-max-tokens 9000 --cell-max-time 1m0s"
	if got := (&snapshot{plan: plan, process: last}).repeat(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The command that repeats a part of a family has the tasks of that part: without them it would add
// the others.
func TestTheCommandRepeatsTheSelection(t *testing.T) {
	s := &snapshot{plan: &experiment.Plan{
		Family: experiment.PlannedFamily{Origin: "tasks", Tasks: 12, Selected: "--limit 2"},
		Tasks:  []experiment.PlannedTask{{ID: "even"}, {ID: "odd"}},
		Runs:   3,
	}}
	const want = "fit-benchmark run --family tasks --runs 3 --task even --task odd --seed 0"
	if got := s.repeat(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The command that repeats an experiment has the sandbox and the network that fit chose by itself,
// which may be others on another day.
func TestTheCommandRepeatsWhatWasChosen(t *testing.T) {
	chosen := report.Group{}
	chosen.Provenance.Isolation, chosen.Provenance.Network = "bwrap", "model"
	s := &snapshot{
		plan:   &experiment.Plan{Family: experiment.PlannedFamily{Origin: "tasks"}, Runs: 3},
		report: &report.Report{Groups: []report.Group{chosen}},
	}
	const want = "fit-benchmark run --family tasks --runs 3 --seed 0 --isolation bwrap --network model"
	if got := s.repeat(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
