package codex

import (
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// The tests here drive the real program against the scripted model, for what is this agent's own;
// what all agents share is tested in test/agents.

type turn = agenttest.Turn

func newStage(t *testing.T, turns ...turn) *agenttest.Stage {
	t.Helper()
	return agenttest.NewStage(t, New(), "gpt-5.5", turns...)
}

func TestTheBudgetIsHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t, agenttest.Bash("echo 1 >> steps"), agenttest.Bash("echo 2 >> steps"),
		agenttest.Bash("echo 3 >> steps"), agenttest.Bash("echo 4 >> steps"), agenttest.Bash(
			"echo 5 >> steps"), agenttest.Bash("echo 6 >> steps"))
	s.Config.Account = gateway.NewAccount("this test", gateway.Budget{USD: 2.5}, nil)
	s.Config.Prices = func(model string, usage session.TokenUsage, _ int64) (float64, bool) {
		return float64(usage.InputTokens) / 1000, model == "gpt-5.5"
	}
	result := s.Run("Count")[0]
	if result.Success || result.Outcome != session.OutcomeBudget {
		t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
	}
	if cost := result.Usage.CostUSD; cost == nil || *cost < 2.5 || *cost > 4 {
		t.Errorf("usage: %+v", result.Usage)
	}
	if strings.Contains(s.File("steps"), "5") {
		t.Errorf("steps taken: %q", s.File("steps"))
	}
}

func TestABudgetNeedsThePriceOfTheModelThatTheProgramChooses(t *testing.T) {
	t.Parallel()
	s := newStage(t, agenttest.Says("Never said."))
	s.Config.Model, s.Config.Account, s.Config.Prices = "", aDollar(), noPrices
	talk, err := New().Start(t.Context(), s.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	if _, err := talk.Prompt(t.Context(), "Do it"); err == nil ||
		!strings.Contains(err.Error(), "a dollar budget needs a price") {
		t.Errorf("error: %v", err)
	}
	if len(s.Requests()) > 0 {
		t.Error("the model was asked nevertheless")
	}
	s.CheckAlone()
}

// The other way round, test/agents tries it.
func TestSystemPrompts(t *testing.T) {
	for name, oneShot := range map[string]bool{"exec": true, "app server": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replace := !oneShot
			s := newStage(t, agenttest.Says("Yes."))
			s.Config.OneShot, s.Config.ReplaceSystemPrompt = oneShot, replace
			s.Config.SystemPrompt = "Speak like \"a pirate\".\nAlways."
			s.Run("Hello")
			body := s.Told()
			if !strings.Contains(body, `Speak like \"a pirate\".\nAlways.`) {
				t.Errorf("replace %v: the model was not told", replace)
			}
			if own := strings.Contains(body, "You are Codex"); own == replace {
				t.Errorf("replace %v: the program's own prompt was sent: %v", replace, own)
			}
		})
	}
}

func TestTheShellHasNoKeyAndTheProgramNoComplaint(t *testing.T) {
	t.Parallel()
	s := newStage(t, agenttest.Bash("env > variables"), agenttest.Says("Looked."))
	s.Config.Environ = append(s.Config.Environ, "CODEX_API_KEY=sk-hunter2")
	if result := s.Run("Look")[0]; !result.Success || !result.Output.KeyVisible {
		t.Errorf("outcome %q, error %v, key visible: %v", result.Outcome, result.Err, result.Output.KeyVisible)
	}
	if variables := s.File("variables"); strings.Contains(variables, "hunter2") ||
		!strings.Contains(variables, "PATH=") {
		t.Errorf("variables of the shell:\n%s", variables)
	}
	for _, event := range s.Events() {
		if strings.HasPrefix(event, `{"type":"stderr"`) && strings.Contains(event, "WARNING") {
			t.Errorf("the program complains: %s", event)
		}
	}
}

func TestOneProcessForEachPromptIsStillOneConversation(t *testing.T) {
	t.Parallel()
	s := newStage(t, agenttest.Bash("echo plum > word"), agenttest.Says("First."), agenttest.Bash("cat word"),
		agenttest.Says("Second."))
	results := s.Run("Remember", "Which was it?")
	for i, want := range []string{"First.", "Second."} {
		if r := results[i]; r.Text != want || r.Usage.InputTokens != 2000 || r.Turns != 2 ||
			r.SessionID != results[0].SessionID {
			t.Errorf("prompt %d: text %q, %d turns, session %q, usage %+v", i+1, r.Text, r.Turns, r.SessionID, r.Usage)
		}
	}
	if argv := results[1].Output.Argv; !slices.Contains(argv, "resume") {
		t.Errorf("the second process: %q", argv)
	}
	if got := s.Session(); got.Usage.InputTokens != 4000 || got.Turns != 4 {
		t.Errorf("%d turns, usage %+v", got.Turns, got.Usage)
	}
}

func TestAResumedConversationCountsWhatIsNew(t *testing.T) {
	t.Parallel()
	s := newStage(t, agenttest.Bash("echo plum > word"), agenttest.Says("First."), agenttest.Says("Second."))
	first := s.Run("Remember")[0]
	s.Forget()
	s.Config.Resume = first.SessionID
	second := s.Run("Which was it?")[0]
	if second.Text != "Second." || second.Usage.InputTokens != 1000 || second.Usage.OutputTokens != 100 {
		t.Errorf("text %q, usage %+v, error %v", second.Text, second.Usage, second.Err)
	}
	if got := s.Session(); got.Usage.InputTokens != 1000 || got.SessionID != first.SessionID {
		t.Errorf("session %q, usage %+v", got.SessionID, got.Usage)
	}
}

func TestSeveralCallsOfOneAnswerAreOneTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, turn{"calls": []turn{{"bash": "echo 1"}, {"bash": "echo 2"}, {"bash": "echo 3"}}},
		agenttest.Says("Done."))
	s.Config.OneShot = false
	if result := s.Run("Count")[0]; result.Turns != 2 || s.Session().Turns != 2 {
		t.Errorf("%d turns in the result, %d in the session", result.Turns, s.Session().Turns)
	}
}

func TestAModelThatCallsItsToolsFromCode(t *testing.T) {
	for name, oneShot := range map[string]bool{"exec": true, "app server": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, turn{"calls": []turn{{"read": "a.txt"}}},
				turn{"calls": []turn{{"edit": "a.txt", "old": "minus", "new": "plus"}}}, agenttest.Says("Done."))
			s.Config.OneShot, s.Config.Model = oneShot, "gpt-6.1-sol"
			s.Write("a.txt", "one\nminus\n")
			result := s.Run("Fix it")[0]
			if !result.Success || !strings.Contains(s.File("a.txt"), "plus") {
				t.Errorf("outcome %q, error %v, file %q", result.Outcome, result.Err, s.File("a.txt"))
			}
			reached := map[string]bool{}
			for _, m := range s.Session().Milestones {
				reached[m.Kind] = true
			}
			if !reached[session.FirstFileRead] || !reached[session.FirstFileEdit] {
				t.Errorf("milestones: %+v", s.Session().Milestones)
			}
		})
	}
}

// TestTheRecordOnDiskTellsTheSame as the stream.
func TestTheRecordOnDiskTellsTheSame(t *testing.T) {
	for name, oneShot := range map[string]bool{"exec": true, "app server": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, turn{"calls": []turn{{"read": "a.txt"}}},
				turn{"calls": []turn{{"edit": "a.txt", "old": "minus", "new": "plus"}}}, agenttest.Bash(
					"exit 3"), agenttest.Says("Done."))
			s.Config.OneShot = oneShot
			s.Write("a.txt", "one\nminus\n")
			result := s.Run("Fix it")[0]
			if !result.Success {
				t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
			}
			sessions, err := session.ReadFile(result.Output.DiskJSONLPath, New().Dialects(), session.Options{})
			if err != nil || len(sessions) != 1 {
				t.Fatalf("%d sessions, %v", len(sessions), err)
			}
			disk, stream := sessions[0], s.Session()
			if disk.Dialect != rolloutDialectName || disk.SessionID != stream.SessionID ||
				disk.Outcome != stream.Outcome || disk.FinalText != stream.FinalText {
				t.Errorf("on disk: %s, session %q, outcome %q, text %q", disk.Dialect, disk.SessionID, disk.Outcome,
					disk.FinalText)
			}
			if disk.Usage.TotalTokens != stream.Usage.TotalTokens || disk.Turns != stream.Turns {
				t.Errorf("on disk: %d turns, usage %+v; in the stream: %d turns, %+v", disk.Turns, disk.Usage,
					stream.Turns, stream.Usage)
			}
			if got, want := tools(disk), tools(stream); !slices.Equal(got, want) {
				t.Errorf("on disk: %q; in the stream: %q", got, want)
			}
			if disk.Unknown+disk.ParseErrors+stream.Unknown+stream.ParseErrors > 0 {
				t.Errorf("not understood: on disk %d and %d, in the stream %d and %d", disk.Unknown, disk.ParseErrors,
					stream.Unknown, stream.ParseErrors)
			}
		})
	}
}

// tools lists the calls as they count, and how they ended.
func tools(s *session.EnrichedSession) []string {
	var list []string
	for _, event := range s.Events {
		switch {
		case event.Tool != nil:
			list = append(list, event.Tool.Effective())
		case event.Result != nil && event.Result.IsError:
			list = append(list, "failed")
		}
	}
	return list
}
