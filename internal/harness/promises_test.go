package harness_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
)

// leadWanting asks everybody once and concludes when so many answers are there.
func leadWanting(answers int) harnesstest.Func {
	got := 0
	return func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
		if turn.Number == 1 {
			_, err := turn.Ask(ctx, "", "well?")
			return "", err
		}
		for _, m := range turn.Messages {
			if m.Kind == harness.KindAnswer {
				got++
			}
		}
		if got < answers {
			return "waiting", nil
		}
		return conclude(ctx, turn, "success", turn.Prompt)
	}
}

func participant(t *testing.T, result harness.Result, name string) harness.ParticipantResult {
	t.Helper()
	for _, p := range result.Participants {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("%s is not in %+v", name, result.Participants)
	return harness.ParticipantResult{}
}

func TestASessionIsRunOnce(t *testing.T) {
	f := facilitate(t, cast{"facilitator": leadWanting(1), "alice": answerAll("yes")}, &buffer{}, harness.Options{},
		"alice")
	if result, err := f.Run(t.Context(), "go"); err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	if result, err := f.Run(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "create a new one") {
		t.Errorf("the second Run: %+v, %v", result, err)
	}
}

func TestAMissingAgentIsAnError(t *testing.T) {
	players := cast{"facilitator": leadWanting(1)}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(),
		AgentConfigs:   []harness.AgentConfig{{Name: "alice"}}, Output: &buffer{},
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			if cfg.Name == "alice" {
				return nil, nil
			}
			return players.query(cfg)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Run(t.Context(), "go"); err == nil ||
		!strings.Contains(err.Error(), "agent of alice: NewAgent returned no agent") {
		t.Errorf("got %v", err)
	}
}

func TestTheSessionContinuesWithoutAnAgentThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		players := cast{
			"facilitator": leadWanting(2), "alice": answerAll("yes"),
			"bob": func(context.Context, *harnesstest.Turn) (string, error) {
				time.Sleep(time.Hour) // whatever its context says
				return "", nil
			},
		}
		var out buffer
		began := time.Now()
		result, err := facilitate(t, players, &out, harness.Options{
			ParticipantLimits: harness.Limits{Timeout: time.Minute},
		}, "alice", "bob").Run(t.Context(), "go")
		if err != nil || !result.Success {
			t.Fatalf("%+v, %v", result, err)
		}
		if took := time.Since(began); took > 5*time.Minute {
			t.Errorf("the session took %v", took)
		}
		bob := participant(t, result, "bob")
		if !bob.Abandoned || bob.Gone != "did not stop when its turn was interrupted" {
			t.Errorf("bob: %+v", bob)
		}
		if !strings.Contains(out.String(), "did not stop within 10s of being interrupted") {
			t.Error("the trace does not say that the agent did not stop")
		}
		time.Sleep(time.Hour) // bob comes back
	})
}

func TestATurnInWhichNothingHappensEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		working := func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			for range 20 { // four hours are not over, and something happens every few minutes
				time.Sleep(10 * time.Minute)
				turn.Say("still at it")
			}
			return answerAll("done")(ctx, turn)
		}
		players := cast{
			"facilitator": leadWanting(2), "alice": working,
			"bob": func(ctx context.Context, _ *harnesstest.Turn) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			},
		}
		var out buffer
		result, err := facilitate(t, players, &out, keepGoing, "alice", "bob").Run(t.Context(), "go")
		if err != nil || !result.Success {
			t.Fatalf("%+v, %v", result, err)
		}
		if gone := participant(t, result, "bob").Gone; !strings.Contains(gone,
			"nothing happened in the turn for 30m (--idle-timeout)") {
			t.Errorf("bob is gone because it %s", gone)
		}
	})
}

func TestASessionHasLimitsByDefault(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			players := cast{
				"facilitator": leadWanting(1),
				"alice": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
					for ctx.Err() == nil {
						time.Sleep(time.Minute)
						turn.Say("soon")
					}
					return "", ctx.Err()
				},
			}
			began := time.Now()
			result, err := facilitate(t, players, &buffer{}, harness.Options{}, "alice").Run(t.Context(), "go")
			if err != nil || result.Reason != harness.ReasonTimeout || time.Since(began) > 4*time.Hour+time.Minute ||
				result.Summary != "The session reached its limit of 4h (--timeout) before the lead concluded." {
				t.Errorf("after %v: %+v, %v", time.Since(began), result, err)
			}
			time.Sleep(time.Minute) // alice notices
		})
	})
	t.Run("turns", func(t *testing.T) {
		askBack := func(to string) harnesstest.Func {
			return func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				_, err := turn.Ask(ctx, to, "and you?")
				return "", err
			}
		}
		players := cast{"facilitator": leadWanting(1), "alice": askBack("bob"), "bob": askBack("alice")}
		result, err := facilitate(t, players, &buffer{}, harness.Options{MaxLeadTurns: 1000}, "alice",
			"bob").Run(t.Context(), "go")
		if err != nil || result.Reason != harness.ReasonMaxTurns ||
			result.Summary != "The session reached its limit of 500 turns (--session-max-turns) before the lead concluded." {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

func TestEveryCallHasALine(t *testing.T) {
	d := newDispatcher(t, harness.ModeFacilitate, "alice")
	d.ok(t, "alice", "RollCall", `{}`)
	d.bad(t, "alice", "Ask", `{"question":"?","to":"nobody"}`, "there is no participant")
	d.bad(t, "alice", "Conclude", `{}`, "has no tool")
	d.bad(t, "alice", "Answer", `{"message":7}`, "must be a string")
	d.ok(t, "alice", "Announce", `{"message":"hello"}`)
	calls := ofType(lines(t, d.out.String()), "tool_call")
	if len(calls) != 4 || calls[0]["ok"] != true || calls[0]["tool"] != "RollCall" || calls[1]["ok"] != false ||
		!strings.Contains(calls[1]["error"].(string), "there is no participant") {
		t.Errorf("calls: %v", calls)
	}
}

// diskThatFills writes to a file until the disk is full.
type diskThatFills struct {
	file *os.File
	left int
}

var errNoSpace = errors.New("no space left on device")

func (d *diskThatFills) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errNoSpace
	}
	return d.file.Write(p)
}

func TestATraceThatCannotBeWrittenEndsTheSessionWhichCanBeResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	players := func() cast {
		return cast{"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if !strings.Contains(turn.Prompt, "[answer#") {
				_, err := turn.Ask(ctx, "alice", "well?")
				return "", err
			}
			return conclude(ctx, turn, "success", "done")
		}, "alice": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			turn.Say(strings.Repeat("thinking ", 500))
			return answerAll("yes")(ctx, turn)
		}}
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(),
		AgentConfigs:   []harness.AgentConfig{{Name: "alice"}}, NewAgent: players().query,
		Output: &diskThatFills{file: file, left: 6 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.Run(t.Context(), "go")
	if !errors.Is(err, errNoSpace) || result.Reason != harness.ReasonTrace ||
		strings.Count(err.Error(), errNoSpace.Error()) != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := lines(t, string(written))[0].Event["settings"].(map[string]any)
	home, _ := settings["homeDir"].(string)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if _, err := os.Stat(home); err != nil {
		t.Errorf("the homes of the agents: %v", err)
	}
	resumed, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: players().query})
	if err != nil || !resumed.Success {
		t.Errorf("resumed: %+v, %v", resumed, err)
	}
}
