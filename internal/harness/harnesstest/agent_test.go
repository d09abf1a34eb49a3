package harnesstest_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/session"
)

func TestFunctionPlaysAParticipant(t *testing.T) {
	var out bytes.Buffer
	s, err := harness.NewSupervisor(harness.SupervisorConfig{
		SupervisorCwd: t.TempDir(), Output: &out,
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			return harnesstest.New(cfg, func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				turn.Say("turn of " + cfg.Name)
				_, err := turn.Call(ctx, "Conclude", map[string]any{"verdict": "success", "summary": turn.Prompt})
				return "", err
			}), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Run(t.Context(), "Say hello.")
	if err != nil || result.Summary != "Say hello." || !strings.Contains(out.String(), `"text":"turn of supervisor"`) {
		t.Errorf("%+v, %v\n%s", result, err, &out)
	}
}

func TestErrorOfTheFunctionIsTheAgentsFailure(t *testing.T) {
	boom := errors.New("boom")
	a := harnesstest.New(harness.AgentConfig{Name: "x"},
		func(context.Context, *harnesstest.Turn) (string, error) { return "", boom })
	conversation, err := a.Start(t.Context(), agent.Config{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversation.Prompt(t.Context(), "go")
	if err != nil || result.Success || !errors.Is(result.Err, boom) || result.Outcome != session.OutcomeError {
		t.Errorf("%+v, %v", result, err)
	}
}
