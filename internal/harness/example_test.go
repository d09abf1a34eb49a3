package harness_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/redact"
)

// scripted makes agents out of functions; a real session makes them from the registry of agents.
func scripted(play map[string]harnesstest.Func) harness.AgentFunc {
	return func(cfg harness.AgentConfig) (agent.Agent, error) { return harnesstest.New(cfg, play[cfg.Name]), nil }
}

// answerWith answers every ask in the inbox.
func answerWith(text string) harnesstest.Func {
	return func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
		_, err := turn.Call(ctx, "Answer", map[string]any{"message": text})
		return "", err
	}
}

// Two participants, a facilitator, and a trace.
func ExampleNewFacilitator() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	query := scripted(map[string]harnesstest.Func{
		"alice": answerWith("The path is clear."),
		"bob":   answerWith("The tests pass."),
		"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if turn.Number == 1 {
				_, err := turn.Call(ctx, "Ask", map[string]any{"question": "What is your current condition?"})
				return "", err
			}
			result, err := turn.Call(ctx, "Conclude",
				map[string]any{"verdict": "success", "summary": "Everybody reported."})
			return result.Text, err
		},
	})
	var trace bytes.Buffer
	facilitator, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: dir,
		AgentConfigs: []harness.AgentConfig{
			{Name: "alice", Role: "explorer"}, // AgentProfile: "alice" reads .claude/agents/alice.md
			{Name: "bob", Role: "tester"},
		},
		NewAgent: query,
		Output:   &trace,
		Redactor: redact.New(redact.Config{Environ: os.Environ()}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := facilitator.Run(context.Background(), "Run a kata storyboard meeting.")
	fmt.Println(result.Success, result.Verdict, result.Summary, err)
	fmt.Println(strings.Contains(trace.String(), `"type":"summary"`))
	// Output:
	// true success Everybody reported. <nil>
	// true
}

// A supervisor has one agent do the work, and decides.
func ExampleNewSupervisor() {
	query := scripted(map[string]harnesstest.Func{
		"agent": answerWith("Fixed in add.go."),
		"supervisor": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if turn.Number == 1 {
				_, err := turn.Call(ctx, "Ask", map[string]any{"question": "Fix Add."})
				return "", err
			}
			_, err := turn.Call(ctx, "Conclude", map[string]any{"verdict": "success", "summary": turn.Prompt})
			return "", err
		},
	})
	supervisor, err := harness.NewSupervisor(harness.SupervisorConfig{
		SupervisorCwd: os.TempDir(), NewAgent: query,
		Output: &bytes.Buffer{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := supervisor.Run(context.Background(), "Have Add fixed.")
	fmt.Println(result.Success, result.Turns, result.Summary, err)
	// Output: true 3 [answer#1] agent: Fixed in add.go. <nil>
}

// A discussion: answers to the lead become replies in the thread.
func ExampleNewDiscusser() {
	query := scripted(map[string]harnesstest.Func{
		"alice": answerWith("I would keep it."),
		"lead": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if turn.Number == 1 {
				_, err := turn.Call(ctx, "Ask", map[string]any{"question": "Keep it or drop it?"})
				return "", err
			}
			_, err := turn.Call(ctx, "Adjourn", map[string]any{"verdict": "adjourned", "summary": "We keep it."})
			return "", err
		},
	})
	discusser, err := harness.NewDiscusser(harness.DiscusserConfig{
		LeadCwd: os.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "alice"}}, DiscussionID: "D_1",
		NewAgent: query,
		Output:   &bytes.Buffer{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := discusser.Run(context.Background(), "Should we keep the old format?")
	fmt.Println(result.Verdict, result.Replies[0].Agent, result.Replies[0].Body, err)
	// Output: adjourned alice I would keep it. <nil>
}

// A judge looks at finished work and gives one verdict.
func ExampleNewJudge() {
	query := scripted(map[string]harnesstest.Func{
		"judge": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			_, err := turn.Call(ctx, "Conclude", map[string]any{"verdict": "failure", "summary": "There is no test."})
			return "", err
		},
	})
	judge, err := harness.NewJudge(
		harness.JudgeConfig{JudgeCwd: os.TempDir(), NewAgent: query, Output: &bytes.Buffer{}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := judge.Run(context.Background(), "Is there a test for Add?")
	fmt.Println(result.Success, result.Verdict, result.Summary, err)
	// Output: false failure There is no test. <nil>
}
