package harness_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
)

func conclude(ctx context.Context, turn *harnesstest.Turn, verdict, summary string) (string, error) {
	return say(ctx, turn, "Conclude", map[string]any{"verdict": verdict, "summary": summary})
}

func TestFacilitatedSessionFromAskToConclusion(t *testing.T) {
	var out buffer
	var prompts []string
	players := cast{
		"alice": answerAll("seven out of ten"),
		"bob":   answerAll("eight out of ten"),
		"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			prompts = append(prompts, turn.Prompt)
			if turn.Number == 1 {
				return say(ctx, turn, "Ask", map[string]any{"question": "How is it going?"})
			}
			if strings.Count(strings.Join(prompts, "\n"), "[answer#") < 2 {
				return "waiting", nil
			}
			return conclude(ctx, turn, "success", "both answered")
		},
	}
	result, err := facilitate(t, players, &out, harness.Options{}, "alice", "bob").Run(t.Context(), "Hold a meeting.")
	if err != nil {
		t.Fatal(err)
	}
	if !result.Success || result.Verdict != "success" || result.Summary != "both answered" ||
		result.Reason != harness.ReasonConcluded {
		t.Errorf("got %+v", result)
	}
	if prompts[0] != "Hold a meeting." {
		t.Errorf("the lead's first prompt is %q", prompts[0])
	}
	all := lines(t, out.String())
	if all[0].kind() != "session_start" || all[len(all)-1].kind() != "summary" {
		t.Errorf("the trace begins with %s and ends with %s", all[0].kind(), all[len(all)-1].kind())
	}
	for i, l := range all {
		if l.Seq != int64(i) {
			t.Fatalf("line %d has seq %d", i, l.Seq)
		}
	}
	if n := len(ofType(all, "message")); n != 4 {
		t.Errorf("%d message lines, want two asks and two answers", n)
	}
}

func TestOnlyAddressedParticipantsStart(t *testing.T) {
	var out buffer
	players := cast{
		"alice": answerAll("yes"), "bob": nil,
		"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if turn.Number == 1 {
				return say(ctx, turn, "Ask", map[string]any{"question": "ready?", "to": "alice"})
			}
			return conclude(ctx, turn, "success", "done")
		},
	}
	result, err := facilitate(t, players, &out, harness.Options{}, "alice", "bob").Run(t.Context(), "go")
	if err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	if strings.Contains(out.String(), `"type":"agent_start","agent":"bob"`) {
		t.Error("bob was started though nobody asked")
	}
}

func TestAnnouncementBeforeTheConclusionStillArrives(t *testing.T) {
	for range 50 {
		var out buffer
		heard := make(chan string, 2)
		listen := func(_ context.Context, turn *harnesstest.Turn) (string, error) {
			heard <- turn.Prompt
			return "", nil
		}
		players := cast{
			"alice": listen, "bob": listen,
			"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				if _, err := say(ctx, turn, "Announce", map[string]any{"message": "that is all"}); err != nil {
					return "", err
				}
				return conclude(ctx, turn, "success", "done")
			},
		}
		options := harness.Options{FinalTurnGrace: time.Hour} // a machine may stand still for two seconds
		if _, err := facilitate(t, players, &out, options, "alice", "bob").Run(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := <-heard; got != "[shared] facilitator: that is all" {
				t.Errorf("heard %q", got)
			}
		}
	}
}

func TestParticipantMayAskItsLeadBeforeItAnswers(t *testing.T) {
	var out buffer
	players := cast{
		"agent": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			switch {
			case turn.Number == 1:
				return say(ctx, turn, "Ask", map[string]any{"question": "Which one?"})
			case strings.Contains(turn.Prompt, "[answer#2] supervisor: the second"):
				return say(ctx, turn, "Answer", map[string]any{"message": "fixed", "askId": 1})
			default:
				return "", errors.New("unexpected prompt " + turn.Prompt)
			}
		},
		"supervisor": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			switch {
			case turn.Number == 1:
				return say(ctx, turn, "Ask", map[string]any{"question": "Fix it."})
			case strings.Contains(turn.Prompt, "[ask#2]"):
				return say(ctx, turn, "Answer", map[string]any{"message": "the second"})
			default:
				return conclude(ctx, turn, "success", turn.Prompt)
			}
		},
	}
	s, err := harness.NewSupervisor(harness.SupervisorConfig{
		SupervisorCwd: t.TempDir(), NewAgent: players.query,
		Output: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Run(t.Context(), "Have it fixed.")
	if err != nil || result.Summary != "[answer#1] agent: fixed" {
		t.Fatalf("%+v, %v\n%s", result, err, out.String())
	}
	if all := lines(t, out.String()); len(ofType(all, "reminder"))+len(ofType(all, "protocol_violation")) > 0 {
		t.Error("somebody who waited for an answer was reminded")
	}
}

func TestSilenceIsRemindedOnceThenAnsweredWithNothing(t *testing.T) {
	var out buffer
	var prompts []string
	heard := ""
	players := cast{
		"alice": answerAll("fine"),
		"bob": func(_ context.Context, turn *harnesstest.Turn) (string, error) {
			prompts = append(prompts, turn.Prompt)
			return "I say nothing", nil
		},
		"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			heard += turn.Prompt + "\n"
			switch {
			case turn.Number == 1:
				return say(ctx, turn, "Ask", map[string]any{"question": "well?"})
			case strings.Count(heard, "[answer#") == 2:
				return conclude(ctx, turn, "success", heard)
			default:
				return "waiting", nil
			}
		},
	}
	result, err := facilitate(t, players, &out, harness.Options{}, "alice", "bob").Run(t.Context(), "go")
	if err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(prompts) != 2 || !strings.HasPrefix(prompts[1],
		"[system] @orchestrator: You have an unanswered ask from facilitator (askId=2)") {
		t.Errorf("bob got %q", prompts)
	}
	if !strings.Contains(result.Summary, "[answer#2] @orchestrator: [no answer: bob did not answer") {
		t.Errorf("the lead got %q", result.Summary)
	}
	violations := ofType(lines(t, out.String()), "protocol_violation")
	if len(violations) != 1 || violations[0]["agent"] != "bob" || violations[0]["askId"] != 2.0 ||
		violations[0]["mode"] != "facilitated" {
		t.Errorf("violations: %v", violations)
	}
}

func TestLeadThatStopsTalkingIsNudgedOnceThenTheSessionEnds(t *testing.T) {
	var out buffer
	var prompts []string
	players := cast{
		"alice": answerAll("x"),
		"facilitator": func(_ context.Context, turn *harnesstest.Turn) (string, error) {
			prompts = append(prompts, turn.Prompt)
			return "hm", nil
		},
	}
	result, err := facilitate(t, players, &out, harness.Options{}, "alice").Run(t.Context(), "go")
	if err != nil || result.Success || result.Verdict != "failure" || result.Reason != harness.ReasonQuiescent ||
		result.Summary == "" {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(prompts) != 2 || !strings.HasPrefix(prompts[1], "[system] @orchestrator: Nobody is working") {
		t.Errorf("the lead got %q", prompts)
	}
}

func TestMembersWaitingForEachOtherDoNotWaitForEver(t *testing.T) {
	var out buffer
	players := cast{
		"agent": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if turn.Number == 1 {
				return say(ctx, turn, "Ask", map[string]any{"question": "what do you mean?"})
			}
			return "still waiting", nil
		},
		"supervisor": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if turn.Number == 1 {
				return say(ctx, turn, "Ask", map[string]any{"question": "do it"})
			}
			return "still waiting", nil
		},
	}
	s, err := harness.NewSupervisor(harness.SupervisorConfig{
		SupervisorCwd: t.TempDir(), NewAgent: players.query,
		Output: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Run(t.Context(), "go")
	if err != nil || result.Reason != harness.ReasonQuiescent {
		t.Fatalf("%+v, %v", result, err)
	}
	if n := len(ofType(lines(t, out.String()), "protocol_violation")); n != 2 {
		t.Errorf("%d violations, want both", n)
	}
}

func TestAskReturnsWhileTheAddresseeIsBusyAndParticipantsWorkInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		busy := func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			time.Sleep(time.Second)
			return answerAll("done")(ctx, turn)
		}
		began := time.Now()
		var answered time.Duration
		lead := func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			if turn.Number == 1 {
				for _, name := range []string{"a", "b", "c", "d"} {
					before := time.Now()
					if _, err := say(ctx, turn, "Ask", map[string]any{"question": "work", "to": name}); err != nil {
						return "", err
					}
					if took := time.Since(before); took > 50*time.Millisecond {
						t.Errorf("Ask took %v", took)
					}
				}
				return "asked", nil
			}
			if strings.Count(turn.Prompt, "[answer#") == 4 {
				answered = time.Since(began)
				return conclude(ctx, turn, "success", "all there")
			}
			return "", errors.New("woken with only " + turn.Prompt)
		}
		players := cast{"a": busy, "b": busy, "c": busy, "d": busy, "facilitator": lead}
		result, err := facilitate(t, players, &out, harness.Options{}, "a", "b", "c", "d").Run(t.Context(), "go")
		if err != nil || !result.Success {
			t.Fatalf("%+v, %v", result, err)
		}
		if answered > 2*time.Second {
			t.Errorf("four participants of one second took %v", answered)
		}
	})
}
