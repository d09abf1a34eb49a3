package harness_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/trace"
)

// breaking are the ways in which the code of an agent can end that are not a return, and what is
// said of each.
var breaking = map[string]struct {
	play harnesstest.Func
	said string
}{
	"panic": {
		func(context.Context, *harnesstest.Turn) (string, error) { panic("out of cheese") },
		"the agent panicked: out of cheese",
	},
	"Goexit": {
		func(context.Context, *harnesstest.Turn) (string, error) {
			runtime.Goexit()
			return "", nil
		},
		"the agent ended its goroutine (runtime.Goexit)",
	},
}

// TestAnAgentThatBreaksHasFailed: the session continues at once, not when a limit is reached.
func TestAnAgentThatBreaksHasFailed(t *testing.T) {
	for name, test := range breaking {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				players := cast{"facilitator": leadWanting(2), "alice": answerAll("yes"), "bob": test.play}
				var out buffer
				began := time.Now()
				result, err := facilitate(t, players, &out, keepGoing, "alice", "bob").Run(t.Context(), "go")
				if err != nil || !result.Success {
					t.Fatalf("%+v, %v", result, err)
				}
				if gone := participant(t, result, "bob").Gone; gone != "failed: "+test.said {
					t.Errorf("bob is gone because it %s", gone)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("the session took %s", took)
				}
				for _, l := range lines(t, out.String()) {
					text, _ := l.Event["text"].(string)
					if strings.Contains(text, "guard_test.go:") != (l.Event["type"] == "warning") {
						t.Errorf("where it broke is for the warning alone: %v", l.Event)
					}
				}
				warnings := ofType(lines(t, out.String()), "warning")
				if len(warnings) == 0 || !strings.Contains(warnings[0]["text"].(string), test.said) {
					t.Errorf("warnings: %v", warnings)
				}
			})
		})
	}
}

// TestAnAdvisorThatBreaksIsUnavailable: whoever asked it continues.
func TestAnAdvisorThatBreaksIsUnavailable(t *testing.T) {
	for name, test := range breaking {
		t.Run(name, func(t *testing.T) {
			told := ""
			players := cast{
				"alice": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
					result, err := turn.Call(ctx, "Advisor", map[string]any{"question": "q"})
					if err != nil {
						return "", err
					}
					told = result.Text
					return answerAll("a")(ctx, turn)
				},
				"advisor":     test.play,
				"facilitator": askEverybodyThenConclude,
			}
			options := harness.Options{Advisor: harness.AdvisorConfig{Model: "big"}}
			result, err := facilitate(t, players, &buffer{}, options, "alice").Run(t.Context(), "go")
			if err != nil || !result.Success || !strings.Contains(told, "unavailable ("+test.said+")") {
				t.Errorf("alice was told %q: %+v, %v", told, result, err)
			}
		})
	}
}

// brokenAtTheEnd is an agent whose sessions break when they are closed.
type brokenAtTheEnd struct{ agent.Agent }

type brokenSession struct{ agent.Session }

func (b brokenAtTheEnd) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	started, err := b.Agent.Start(ctx, cfg)
	return brokenSession{started}, err
}

func (brokenSession) Close() error { panic("out of cheese") }

func TestAnAgentThatBreaksAtTheEndSpoilsNothing(t *testing.T) {
	players := cast{"facilitator": leadWanting(1), "alice": answerAll("yes")}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(),
		AgentConfigs:   []harness.AgentConfig{{Name: "alice"}},
		Output:         &buffer{},
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			made, err := players.query(cfg)
			return brokenAtTheEnd{made}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := f.Run(t.Context(), "go"); err != nil || !result.Success {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestARunOfAnAgentThatBreaksHasAnEnd: the error says what happened, and the trace is whole.
func TestARunOfAnAgentThatBreaksHasAnEnd(t *testing.T) {
	for name, test := range breaking {
		t.Run(name, func(t *testing.T) {
			var out buffer
			result, err := harness.Run(t.Context(), harness.RunConfig{
				Agent: harnesstest.New(harness.AgentConfig{}, test.play),
				Task:  "go",
				Trace: trace.NewWriter(&out, trace.Config{}),
			})
			if err == nil || !strings.HasSuffix(err.Error(), test.said) || result.Success {
				t.Errorf("%+v, %v", result, err)
			}
			if all := lines(t, out.String()); all[len(all)-1].kind() != "summary" {
				t.Errorf("the trace ends with %v", all[len(all)-1])
			}
		})
	}
}

func TestARunWithoutAnAgentIsAnError(t *testing.T) {
	var out buffer
	_, err := harness.Run(t.Context(), harness.RunConfig{Task: "go", Trace: trace.NewWriter(&out, trace.Config{})})
	if err == nil || !strings.Contains(err.Error(), "RunConfig.Agent") || out.String() != "" {
		t.Errorf("%v\n%s", err, out.String())
	}
}
