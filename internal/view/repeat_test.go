package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
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

// A stopped experiment goes on with the command of its page: in its directory, with a budget that
// suffices, and as its last process checked its models. What only its graders kept from a verdict
// is graded again.
func TestTheCommandContinuesAnExperiment(t *testing.T) {
	cost := 0.5
	plan := &experiment.Plan{
		Family: experiment.PlannedFamily{Origin: "tasks"},
		Tasks:  []experiment.PlannedTask{{ID: "even"}, {ID: "odd"}},
		Arms:   []experiment.PlannedArm{{Arm: experiment.Arm{Name: "a", Agent: "codex"}}},
		Runs:   2,
		Shard:  experiment.Shard{I: 1, N: 1},
		Stop:   &experiment.StopRule{Alpha: 0.01},
	}
	one := ledger.Record{TaskID: "even", Arm: "a", Verdict: ledger.Pass, CostUSD: &cost}
	grader := report.Group{Causes: []failure.Cause{{Class: ledger.ErrorGrader, Runs: 4}}}
	const began = "fit-benchmark run --family tasks --runs 2 --arm a=agent:codex --seed 0 --stop-early"
	for name, test := range map[string]struct {
		state   string
		done    int
		process *experiment.Process
		groups  []report.Group
		want    string
	}{
		"a budget": {runIncomplete, 1, &experiment.Process{
			Status:  experiment.OverBudget,
			Budgets: experiment.Budgets{Experiment: experiment.Budget{USD: 0.6}},
		}, nil, began + " --shard 1/1 --alpha 0.01 --max-cost-usd 2.2 --output 'my results'"},
		"a small budget": {runEmpty, 0, &experiment.Process{
			Status:  experiment.OverBudget,
			Budgets: experiment.Budgets{Experiment: experiment.Budget{Tokens: 1}},
		}, nil, began + " --shard 1/1 --alpha 0.01 --max-tokens TOKENS --output 'my results'"},
		"a probe": {runEmpty, 0, &experiment.Process{
			Status: experiment.Incomplete, NoProbe: true,
		}, nil, began + " --no-probe --shard 1/1 --alpha 0.01 --output 'my results'"},
		"killed": {runIncomplete, 1, nil, nil, began + " --shard 1/1 --alpha 0.01 --output 'my results'"},
		"errors": {runIncomplete, 4, nil, nil, began + " --shard 1/1 --alpha 0.01 --output 'my results' --retry-errors"},
		"its graders": {
			runIncomplete, 4, nil,
			[]report.Group{grader},
			"fit-benchmark grade --family tasks 'my results'",
		},
		"nothing":    {runComplete, 4, nil, nil, ""},
		"it runs":    {runRunning, 1, nil, nil, ""},
		"its rule":   {runIncomplete, 1, &experiment.Process{Status: experiment.Decided}, nil, ""},
		"it is hurt": {runDamaged, 1, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{
				plan:    plan,
				process: test.process,
				found:   &results.Results{Records: []ledger.Record{one}},
				report:  &report.Report{Groups: test.groups},
			}
			entry := listEntry{
				Kind:    kindBenchmark,
				State:   test.state,
				Done:    test.done,
				Planned: 4,
				Dir:     "my results",
			}
			if got := s.continuation(&entry); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A plan does not have the files of a policy, so that nothing repeats it.
func TestWhatThePlanDoesNotSayIsNotRepeated(t *testing.T) {
	s := &snapshot{plan: &experiment.Plan{Family: experiment.PlannedFamily{Origin: "tasks"}, Faults: "sha256:1"}}
	if got := s.repeat(); got != "" {
		t.Error(got)
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
