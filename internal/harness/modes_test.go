package harness_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/session"
)

// askEverybodyThenConclude is a facilitator that asks once and concludes when everything is
// answered.
func askEverybodyThenConclude(ctx context.Context, turn *harnesstest.Turn) (string, error) {
	if turn.Number == 1 {
		return say(ctx, turn, "Ask", map[string]any{"question": "well?"})
	}
	result, err := turn.Call(ctx, "Conclude", map[string]any{"verdict": "success", "summary": turn.Prompt})
	return result.Text, err // refused while answers are missing, which is fine
}

func TestFailedTurnIsTriedAgainAndThenTheParticipantIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		attempts := 0
		players := cast{
			"alice": answerAll("fine"), "facilitator": askEverybodyThenConclude,
			"bob": func(context.Context, *harnesstest.Turn) (string, error) {
				attempts++
				return "", errors.New("model is overloaded")
			},
		}
		result, err := facilitate(t, players, &out, keepGoing, "alice", "bob").Run(t.Context(), "go")
		if err != nil || !result.Success || attempts != 2 {
			t.Fatalf("%+v, %v, %d attempts", result, err, attempts)
		}
		all := lines(t, out.String())
		var policies []any
		for _, e := range ofType(all, "runner_error") {
			policies = append(policies, e["policy"])
		}
		if diff := cmp.Diff([]any{"retry", "fail"}, policies); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(out.String(), "[no answer: bob failed: model is overloaded]") {
			t.Error("the asker was not told why")
		}
	})
}

// TestParticipantThatFailsEndsTheSessionAndAskersLearnWhy: alice is still at work when bob fails.
func TestParticipantThatFailsEndsTheSessionAndAskersLearnWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		var told string
		players := cast{
			"facilitator": askEverybodyThenConclude,
			"alice": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				if _, err := say(ctx, turn, "Ask", map[string]any{"question": "and you?", "to": "bob"}); err != nil {
					return "", err
				}
				<-ctx.Done() // the session has ended, and this agent has not noticed yet
				result, err := turn.Call(context.WithoutCancel(ctx), "Announce", map[string]any{"message": "here"})
				told = result.Text
				return "", err
			},
			"bob": func(context.Context, *harnesstest.Turn) (string, error) {
				return "", errors.New("model is overloaded")
			},
		}
		result, err := facilitate(t, players, &out, harness.Options{}, "alice", "bob").Run(t.Context(), "go")
		if err == nil || result.Success || !strings.Contains(err.Error(), "bob: model is overloaded") {
			t.Fatalf("%+v, %v", result, err)
		}
		if !strings.Contains(told, "Your ask #3: no answer: the session has ended (bob: model is overloaded).") {
			t.Errorf("alice was told %q", told)
		}
	})
}

func TestAgentThatCannotRunEndsTheSessionWithASummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		players := cast{"facilitator": askEverybodyThenConclude} // nobody plays alice
		result, err := facilitate(t, players, &out, harness.Options{}, "alice").Run(t.Context(), "go")
		if err == nil || !strings.Contains(err.Error(), "nobody plays alice") || result.Verdict != "failure" ||
			result.Reason != harness.ReasonError {
			t.Fatalf("%+v, %v", result, err)
		}
		all := lines(t, out.String())
		if all[len(all)-1].kind() != "summary" {
			t.Error("no summary")
		}
	})
}

// forgetful is an agent that has lost its conversations.
type forgetful struct{ agent.Agent }

func (f forgetful) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	if cfg.Resume != "" {
		return nil, errors.New("no such conversation")
	}
	return f.Agent.Start(ctx, cfg)
}

func TestConversationThatIsGoneIsStartedAnew(t *testing.T) {
	var out buffer
	d, err := harness.NewDiscusser(harness.DiscusserConfig{
		LeadCwd: t.TempDir(), Output: &out, Resume: &harness.ResumeContext{Sessions: map[string]string{"lead": "old"}},
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			return forgetful{harnesstest.New(cfg, func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				return say(ctx, turn, "Adjourn", map[string]any{"verdict": "adjourned", "summary": "s"})
			})}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := d.Run(t.Context(), "go"); err != nil || !result.Success ||
		len(ofType(lines(t, out.String()), "warning")) != 1 {
		t.Errorf("%+v, %v\n%s", result, err, out.String())
	}
}

func TestLimits(t *testing.T) {
	chat := func(ctx context.Context, turn *harnesstest.Turn) (string, error) { // two who never come to an end
		time.Sleep(time.Second)
		if _, err := answerAll("yes")(ctx, turn); err != nil {
			return "", err
		}
		_, err := turn.Call(ctx, "Ask", map[string]any{"question": "and?"})
		return "", err
	}
	for name, test := range map[string]struct {
		options harness.Options
		reason  string
		event   string
	}{
		"time": {
			harness.Options{Limits: harness.Limits{Timeout: time.Minute}},
			harness.ReasonTimeout,
			"limit",
		},
		"turns":      {harness.Options{Limits: harness.Limits{Turns: 9}}, harness.ReasonMaxTurns, "limit"},
		"lead turns": {harness.Options{MaxLeadTurns: 5}, harness.ReasonMaxTurns, "lead_turn_limit"},
		"participant's time": {
			harness.Options{ParticipantLimits: harness.Limits{Timeout: 1500 * time.Millisecond}},
			harness.ReasonQuiescent, "agent_end",
		},
		"participants": {
			harness.Options{ParticipantLimits: harness.Limits{Turns: 3}},
			harness.ReasonQuiescent,
			"agent_end",
		},
		"default": {harness.Options{}, harness.ReasonMaxTurns, "lead_turn_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out buffer
				result, err := facilitate(t, cast{"alice": chat, "facilitator": chat}, &out, test.options,
					"alice").Run(t.Context(), "go")
				if err != nil || result.Reason != test.reason || result.Verdict != "failure" {
					t.Errorf("%+v, %v", result, err)
				}
				if len(ofType(lines(t, out.String()), test.event)) == 0 {
					t.Errorf("no %s in the trace", test.event)
				}
			})
		})
	}
}

// spender is an agent that costs something.
type spender struct{ *worker }

func (s spender) Start(context.Context, agent.Config) (agent.Session, error) { return s, nil }

func (s spender) Prompt(ctx context.Context, text string) (agent.Result, error) {
	result, err := s.worker.Prompt(ctx, text)
	cost := 0.25
	result.Usage = session.TokenUsage{TotalTokens: 100, CostUSD: &cost}
	return result, err
}

func TestBudgets(t *testing.T) {
	for name, limits := range map[string]harness.Limits{"tokens": {Tokens: 500}, "dollars": {CostUSD: 1}} {
		var out buffer
		f, err := harness.NewFacilitator(harness.FacilitatorConfig{
			FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "p"}}, Output: &out,
			Options: harness.Options{Limits: limits},
			NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
				w := &worker{cfg: cfg, team: 1}
				if cfg.Name == "facilitator" {
					w.rounds, w.first, w.last = 1000, func() {}, func() {}
				}
				return spender{w}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		result, err := f.Run(t.Context(), "work")
		if err != nil || result.Reason != harness.ReasonBudget || result.Tokens < 400 || result.Tokens > 600 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if result.CostUSD == nil || *result.CostUSD < 1 || len(result.Participants) != 2 {
			t.Errorf("%s: cost %v of %v", name, result.CostUSD, result.Participants)
		}
	}
}

// Agents that say nothing about tokens are not free.
func TestATeamWithoutFiguresHasNoKnownCost(t *testing.T) {
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(),
		AgentConfigs:   []harness.AgentConfig{{Name: "p"}},
		Output:         &buffer{},
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			w := &worker{cfg: cfg, team: 1}
			if cfg.Name == "facilitator" {
				w.rounds, w.first, w.last = 1, func() {}, func() {}
			}
			return w, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := f.Run(t.Context(), "work"); err != nil || !result.Success || result.CostUSD != nil {
		t.Errorf("%+v, %v", result, err)
	}
}

// fullDisk takes some writes and then no more.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.room--; d.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestTraceThatCannotBeWrittenEndsTheSession(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // such a session keeps the homes of its agents
	for room := range 12 {
		f, err := harness.NewFacilitator(harness.FacilitatorConfig{
			FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "alice"}}, Output: &fullDisk{room},
			NewAgent: cast{"alice": answerAll("x"), "facilitator": askEverybodyThenConclude}.query,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Run(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "no space left") {
			if err == nil && room > 8 { // everything fitted
				continue
			}
			t.Errorf("room for %d writes: %v", room, err)
		}
	}
}

func TestASessionWhoseToolsCannotBeConnectedLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "alice"}}, Output: io.Discard,
		NewAgent: cast{}.query,
		Options: harness.Options{Connect: func(*harness.Dispatcher) (harness.Connector, error) {
			return nil, errors.New("no socket")
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("the session ended with %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestInterruptionEndsEverythingInOrder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // whoever resumes it needs the homes of its agents
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		ctx, cancel := context.WithCancel(t.Context())
		hang := func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		time.AfterFunc(time.Minute, cancel)
		result, err := facilitate(t, cast{"alice": hang, "facilitator": askEverybodyThenConclude}, &out,
			harness.Options{}, "alice").Run(ctx, "go")
		if !errors.Is(err, context.Canceled) || result.Reason != harness.ReasonInterrupted ||
			result.Verdict != "failure" {
			t.Errorf("%+v, %v", result, err)
		}
		all := lines(t, out.String())
		if all[len(all)-1].kind() != "summary" || len(ofType(all, "interrupted")) != 1 {
			t.Errorf("%s", out.String())
		}
	})
}

func TestAdvisor(t *testing.T) {
	var out buffer
	var mu sync.Mutex
	var advisorPrompt string
	var texts []string
	var advisorConfig harness.AgentConfig
	consult := func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
		turn.Say("I looked at the code")
		for range 2 {
			result, err := turn.Call(ctx, "Advisor", map[string]any{"question": "left or right?"})
			if err != nil || result.IsError {
				return "", errors.Join(err, errors.New(result.Text))
			}
			mu.Lock()
			texts = append(texts, result.Text)
			mu.Unlock()
		}
		return answerAll("right")(ctx, turn)
	}
	players := cast{
		"alice": consult, "facilitator": askEverybodyThenConclude,
		"advisor": func(_ context.Context, turn *harnesstest.Turn) (string, error) {
			advisorPrompt = turn.Prompt
			turn.Say("thinking")
			return "Go right.", nil
		},
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "alice", Agent: "codex"}}, Output: &out,
		Options: harness.Options{Advisor: harness.AdvisorConfig{Model: "big", MaxUses: 1}},
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			if cfg.Name == "advisor" {
				advisorConfig = cfg
			}
			return players.query(cfg)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := f.Run(t.Context(), "go"); err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(texts) != 2 || !strings.HasPrefix(texts[0], "Go right.") || !strings.Contains(texts[0], "0 of 1") ||
		!strings.Contains(texts[1], "1 of 1 times") {
		t.Errorf("alice was told %q", texts)
	}
	for _, part := range []string{
		"<caller_system_prompt>", "use it once in this session", "<caller_prompts>",
		"[ask#1]", "<caller_transcript>", "I looked at the code", "<consult_question>\nleft or right?",
	} {
		if !strings.Contains(advisorPrompt, part) {
			t.Errorf("the advisor does not know %q: %s", part, advisorPrompt)
		}
	}
	if advisorConfig.Agent != "codex" || advisorConfig.Model != "big" || advisorConfig.MaxTurns != 5 {
		t.Errorf("advisor: %+v", advisorConfig)
	}
	consults := ofType(lines(t, out.String()), "advisor_consult")
	if len(consults) != 1 || consults[0]["caller"] != "alice" || consults[0]["ok"] != true ||
		consults[0]["remaining"] != 0.0 || !strings.Contains(out.String(), `"source":"advisor"`) {
		t.Errorf("consults: %v", consults)
	}
}

func TestAdvisorThatHangsIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		told := ""
		players := cast{
			"alice": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				result, err := turn.Call(ctx, "Advisor", map[string]any{"question": "q"})
				if err != nil || result.IsError {
					return "", errors.New("the tool failed")
				}
				told = result.Text
				return answerAll("a")(ctx, turn)
			},
			"advisor": func(ctx context.Context, _ *harnesstest.Turn) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			},
			"facilitator": askEverybodyThenConclude,
		}
		options := harness.Options{Advisor: harness.AdvisorConfig{Model: "big"}}
		if result, err := facilitate(t, players, &out, options, "alice").Run(t.Context(), "go"); err != nil ||
			!result.Success {
			t.Fatalf("%+v, %v", result, err)
		}
		if !strings.Contains(told, "unavailable") || !strings.Contains(told, "2 of 3") {
			t.Errorf("alice was told %q", told)
		}
	})
}

// TestSupervisorRunsCommandsOnlyWhereTheyChangeNothing looks at what the supervisor's agent is
// given, with and without a sandbox.
func TestSupervisorRunsCommandsOnlyWhereTheyChangeNothing(t *testing.T) {
	for name, test := range map[string]struct {
		sandbox bool
		named   []string
		bash    bool
	}{
		"in a sandbox": {sandbox: true, bash: true}, "without one": {},
		"without one, because somebody wants it": {named: []string{"Read", "Bash"}, bash: true},
	} {
		t.Run(name, func(t *testing.T) {
			office, workshop := t.TempDir(), t.TempDir()
			var lead harness.AgentConfig
			s, err := harness.NewSupervisor(harness.SupervisorConfig{
				SupervisorCwd: office, AgentCwd: workshop, Supervisor: harness.AgentConfig{Tools: test.named},
				ReadOnlySandbox: test.sandbox, Output: &buffer{},
				Options: harness.Options{Errors: harness.ErrorPolicy{Retries: -1}},
				NewAgent: func(c harness.AgentConfig) (agent.Agent, error) {
					lead = c
					return nil, errors.New("seen enough")
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Run(t.Context(), "Lead."); err == nil {
				t.Fatal("a session without a lead")
			}
			if slices.Contains(lead.Tools, "Bash") != test.bash ||
				slices.Contains(lead.DisallowedTools, "Bash") == test.bash {
				t.Errorf("tools %v, denied %v", lead.Tools, lead.DisallowedTools)
			}
			var want []string
			if test.sandbox {
				want = []string{office, workshop}
			}
			if diff := cmp.Diff(want, lead.ReadOnly); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	work := t.TempDir()
	for name, test := range map[string]struct {
		sandbox bool
		play    harnesstest.Func
		want    harness.Result
	}{
		"met": {false, func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			return conclude(ctx, turn, "success", "all met")
		}, harness.Result{Success: true, Verdict: "success", Summary: "all met", Turns: 1}},
		"not met": {true, func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			return conclude(ctx, turn, "failure", "one missing")
		}, harness.Result{Verdict: "failure", Summary: "one missing", Turns: 1}},
		"no words": {
			false, func(context.Context, *harnesstest.Turn) (string, error) { return "hm", nil },
			harness.Result{Turns: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out buffer
			var cfg harness.AgentConfig
			j, err := harness.NewJudge(harness.JudgeConfig{
				JudgeCwd: work, ReadOnlySandbox: test.sandbox, Output: &out,
				NewAgent: func(c harness.AgentConfig) (agent.Agent, error) {
					cfg = c
					return harnesstest.New(c, test.play), nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := j.Run(t.Context(), "Is it good?")
			if err != nil || got.Success != test.want.Success || got.Verdict != test.want.Verdict ||
				got.Turns != test.want.Turns || test.want.Verdict != "" && got.Summary != test.want.Summary {
				t.Errorf("%+v, %v", got, err)
			}
			if cfg.Cwd == work || strings.HasPrefix(cfg.Cwd, work) ||
				!strings.Contains(out.String(), "The work to judge lies in "+work) {
				t.Errorf("the judge runs in %s", cfg.Cwd)
			}
			if hasBash := strings.Contains(strings.Join(cfg.Tools, " "), "Bash"); hasBash != test.sandbox {
				t.Errorf("sandbox %v, tools %v", test.sandbox, cfg.Tools)
			}
			if _, err := os.Stat(cfg.Cwd); !os.IsNotExist(err) {
				t.Errorf("the judge's room is left behind: %v", err)
			}
			all := lines(t, out.String())
			if all[len(all)-1].kind() != "summary" {
				t.Error("no summary")
			}
		})
	}
}
