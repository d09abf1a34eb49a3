package agents

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
)

// fixAdd reads, edits, tests, and says so.
func fixAdd(t *testing.T) string {
	return scriptOf(t,
		turn{
			"thinking": "I should look first.", "text": "I'll read calc.go.",
			"calls": []turn{call("read", "calc.go")},
		},
		turn{"calls": []turn{call("edit", "calc.go", "old", "return a - b", "new", "return a + b")}},
		turn{"calls": []turn{call("bash", "make test")}},
		turn{"text": "Add adds now, and the tests pass."},
	)
}

// TestHappyPathWithEditAndTestRun: what was recorded of it is then answered without a model, in
// another directory, where the agent says and does the same.
func TestHappyPathWithEditAndTestRun(t *testing.T) {
	t.Parallel()
	for name, oneShot := range map[string]bool{"one process": true, "long-lived": false} {
		t.Run(name, func(t *testing.T) {
			eachAgent(t, func(t *testing.T, a agent.Agent) {
				r := newRig(t, a, fixAdd(t))
				r.config.OneShot = oneShot
				path := filepath.Join(t.TempDir(), "agent.calls")
				kept := r.keep(gateway.RecordConfig{Path: path})
				result, s := r.run("Fix Add so that the tests pass")
				if !result.Success || result.Outcome != session.OutcomeSuccess || result.Err != nil {
					t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
				}
				if want := "Add adds now, and the tests pass."; result.Text != want || s.FinalText != want {
					t.Errorf("final text: result %q, session %q", result.Text, s.FinalText)
				}
				if !strings.Contains(r.file("calc.go"), "a + b") {
					t.Errorf("calc.go was not fixed:\n%s", r.file("calc.go"))
				}
				checkHappySession(t, s)
				if result.SessionID == "" || s.SessionID != result.SessionID {
					t.Errorf("session id: result %q, session %q", result.SessionID, s.SessionID)
				}
				if result.Usage.TotalTokens != s.Usage.TotalTokens {
					t.Errorf("usage: result %d, session %d tokens", result.Usage.TotalTokens, s.Usage.TotalTokens)
				}
				if alive := r.survivors(); len(alive) > 0 {
					t.Errorf("left behind: %q", alive)
				}
				if err := kept.Close(); err != nil {
					t.Error(err)
				}
				checkRecord(t, path, lane)
				if oneShot {
					checkReplay(t, r, path, result)
				}
			})
		})
	}
}

func checkHappySession(t *testing.T, s *session.EnrichedSession) {
	t.Helper()
	if s.Outcome != session.OutcomeSuccess || s.Turns != 4 {
		t.Errorf("outcome %q after %d turns", s.Outcome, s.Turns)
	}
	if u := s.Usage; u.InputTokens != 4000 || u.OutputTokens != 400 || u.Partial {
		t.Errorf("usage: %+v", u)
	}
	for effective, want := range map[string]int{session.ToolRead: 1, session.ToolEdit: 1, session.ToolTest: 1} {
		if got := calls(s, effective); len(got) != want {
			t.Errorf("%d calls of %s, want %d", len(got), effective, want)
		}
	}
	reached := milestones(s)
	order := []string{session.FirstFileRead, session.FirstFileEdit, session.FirstTestRun, session.TaskCompletion}
	for i, kind := range order {
		place, ok := reached[kind]
		if !ok {
			t.Errorf("milestone %s was not reached", kind)
		} else if i > 0 && place < reached[order[i-1]] {
			t.Errorf("milestone %s came before %s", kind, order[i-1])
		}
	}
	for _, event := range s.Events {
		if event.TimestampMs == 0 || event.TsSource == "" {
			t.Errorf("event %d (%s) has no time", event.Seq, event.Kind)
		}
	}
}

func TestInASandbox(t *testing.T) {
	testenv.NeedTool(t, "bwrap")
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		outside := filepath.Join(t.TempDir(), "outside")
		if err := os.WriteFile(outside, []byte("not yours"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, a, scriptOf(t,
			turn{"calls": []turn{call("bash",
				"cat "+outside+" > seen || echo unseen > seen; env > variables")}}, turn{"text": "Looked."}))
		r.config.Isolation = sandbox.Isolation{
			Kind: sandbox.IsolationBwrap, Network: true,
			Writable: []string{r.config.Dir},
		}
		result, _ := r.run("Look around")
		if !result.Success || result.Text != "Looked." {
			t.Errorf("result: outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
		}
		if strings.TrimSpace(r.file("seen")) != "unseen" {
			t.Error("the agent saw a file outside of its workspace")
		}
		if strings.Contains(r.file("variables"), "hunter2") {
			t.Error("the agent's shell has the caller's secrets")
		}
	})
}

func TestToolFailureAndRecovery(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t,
			turn{"calls": []turn{call("read", "calc.go")}},
			turn{"calls": []turn{call("bash", "make test")}},
			turn{"calls": []turn{call("edit", "calc.go", "old", "return a * b", "new", "return a + b")}},
			turn{"calls": []turn{call("edit", "calc.go", "old", "return a - b", "new", "return a + b")}},
			turn{"calls": []turn{call("bash", "make test")}},
			turn{"text": "Recovered."},
		))
		result, s := r.run("Fix Add")
		if !result.Success {
			t.Errorf("result: outcome %q, error %v", result.Outcome, result.Err)
		}
		failed := 0
		for _, event := range s.Events {
			if event.Result != nil && (event.Result.IsError ||
				(event.Result.ExitCode != nil && *event.Result.ExitCode != 0)) {
				failed++
			}
		}
		least := 2 // the test, and the edit that does not match
		if a.Info().Capabilities.ShowsFailedCalls == agent.Unsupported {
			least = 1
		}
		if failed < least || failed > 2 {
			t.Errorf("%d failed results, want %d to 2", failed, least)
		}
		reached := milestones(s)
		if _, ok := reached[session.FirstErrorRecovery]; !ok {
			t.Errorf("no recovery noticed: %v", s.Milestones)
		}
		if _, ok := reached[session.FirstFileEdit]; !ok {
			t.Errorf("no edit noticed: %v", s.Milestones)
		}
	})
}

// trouble are the words of the real services, because some agents go by them.
var trouble = map[int]string{429: "rate limit exceeded", 500: "internal server error", 529: "Overloaded"}

// TestModelTroubleThatPasses: one after the other.
func TestModelTroubleThatPasses(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		var turns []turn
		for _, status := range []int{429, 500, 529} {
			turns = append(turns, turn{
				"calls": []turn{call("bash", "echo "+strconv.Itoa(status))},
				"fault": turn{"status": status, "message": trouble[status], "times": 1, "retry_after": "0"},
			})
		}
		r := newRig(t, a, scriptOf(t, append(turns, turn{"text": "Done after all."})...))
		result, s := r.run("Do it")
		if !result.Success || result.Text != "Done after all." || result.Turns != 4 {
			t.Errorf("result: outcome %q after %d turns, text %q, error %v", result.Outcome, result.Turns, result.Text,
				result.Err)
		}
		retries := errorsOf(s, session.ErrorRetry)
		if a.Info().Capabilities.ShowsRetries != agent.Unsupported && len(retries) != len(turns) {
			t.Errorf("%d retries in the session", len(retries))
		}
		for _, kind := range []session.ErrorKind{
			session.ErrorRateLimit, session.ErrorOverloaded,
			session.ErrorAPI, session.ErrorAuth,
		} {
			if given := errorsOf(s, kind); len(given) > 0 {
				t.Errorf("the session says that it gave up: %+v", given)
			}
		}
	})
}

func TestMaxTurns(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		if a.Info().Capabilities.MaxTurns == agent.Unsupported {
			t.Fatal("every agent must have a turn limit, its own or ours")
		}
		var turns []turn
		for _, name := range []string{"one", "two", "three", "four", "five"} {
			// No model answers at once. One that did could be a turn ahead of a limit that is held
			// from outside.
			turns = append(turns, turn{"calls": []turn{call("bash", "echo "+name+" >> steps")}, "delay_ms": 500})
		}
		r := newRig(t, a, scriptOf(t, turns...))
		r.config.MaxTurns = 2
		r.config.OneShot = a.Info().Capabilities.MaxTurns == agent.Native
		result, s := r.run("Count")
		if result.Success || result.Outcome != session.OutcomeMaxTurns {
			t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
		}
		if strings.Contains(r.file("steps"), "four") || !strings.Contains(r.file("steps"), "one") {
			t.Errorf("steps taken: %q", r.file("steps"))
		}
		if s.Turns > 3 {
			t.Errorf("%d turns", s.Turns)
		}
	})
}

func TestATurnLimitHoldsForEachPrompt(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		one := []turn{{"calls": []turn{call("bash", "echo step")}}, {"text": "Done."}}
		r := newRig(t, a, scriptOf(t, slices.Concat(one, one, one)...))
		r.config.MaxTurns, r.config.OneShot = 2, false
		s := r.start()
		for i := range 3 {
			if result := r.prompt(t.Context(), s, "Next"); !result.Success || result.Turns != 2 {
				t.Errorf("prompt %d: outcome %q after %d turns, error %v", i+1, result.Outcome, result.Turns,
					result.Err)
			}
		}
	})
}

// slow tells that it has begun through a pipe and then takes forever, in a session of its own, as
// the agents' shells do. It waits a moment before, because some agents tell of a command only a
// little after it was started.
const slow = "sleep 1; echo begun > begun; while :; do sleep 1; done"

// begun waits until the agent's command runs.
func begun(t *testing.T, dir string) (wait func()) {
	t.Helper()
	path := filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	return func() {
		_ = pipe.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := pipe.Read(make([]byte, 16)); err != nil {
			t.Errorf("the agent's command did not begin: %v", err)
		}
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	for name, oneShot := range map[string]bool{"one process": true, "long-lived": false} {
		t.Run(name, func(t *testing.T) {
			eachAgent(t, func(t *testing.T, a agent.Agent) {
				r := newRig(t, a, scriptOf(t, turn{"calls": []turn{call("bash", slow, "timeout_ms", 300000)}},
					turn{"text": "Went on."}))
				r.config.OneShot = oneShot
				wait := begun(t, r.config.Dir)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { wait(); cancel() }()
				s := r.start()
				result := r.prompt(ctx, s, "Take your time")
				stopped := result.Outcome == session.OutcomeCancelled || result.Outcome == session.OutcomeAborted
				if result.Success || !result.Aborted || !stopped {
					t.Errorf("result: success %v, aborted %v, outcome %q, error %v", result.Success, result.Aborted,
						result.Outcome, result.Err)
				}
				if !oneShot { // an interrupt is clean: the conversation goes on
					if again := r.prompt(t.Context(), s, "Go on"); !again.Success || again.Text != "Went on." {
						t.Errorf("after the interrupt: outcome %q, text %q, error %v", again.Outcome, again.Text,
							again.Err)
					}
				}
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				if alive := r.survivors(); len(alive) > 0 {
					t.Errorf("left behind: %q", alive)
				}
				if got := calls(r.session(), session.ToolBash); len(got) != 1 {
					t.Errorf("%d shell calls in the session", len(got))
				}
			})
		})
	}
}

func TestSecondPromptInTheSameSession(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		if a.Info().Capabilities.LongLived == agent.Unsupported {
			t.Skip("starts a process for every prompt")
		}
		r := newRig(t, a, scriptOf(t, turn{"text": "First."}, turn{"text": "Second."}))
		r.config.OneShot = false
		s := r.start()
		first, second := r.prompt(t.Context(), s, "One"), r.prompt(t.Context(), s, "Two")
		if first.Text != "First." || second.Text != "Second." {
			t.Errorf("answers: %q, %q", first.Text, second.Text)
		}
		if first.SessionID == "" || first.SessionID != second.SessionID {
			t.Errorf("session ids: %q, %q", first.SessionID, second.SessionID)
		}
		for i, result := range []agent.Result{first, second} {
			if result.Usage.InputTokens != 1000 || result.Usage.OutputTokens != 100 || result.Turns != 1 {
				t.Errorf("prompt %d: %d turns, usage %+v", i+1, result.Turns, result.Usage)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if u := r.session().Usage; u.InputTokens != 2000 || u.OutputTokens != 200 {
			t.Errorf("usage of the session: %+v", u)
		}
	})
}

func TestResumeInANewProcess(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t,
			turn{"calls": []turn{call("bash", "echo plum > word")}}, turn{"text": "Remembered."},
			turn{"calls": []turn{call("read", "word")}}, turn{"text": "It was plum."}))
		first := r.start()
		one := r.prompt(t.Context(), first, "Remember the word")
		if err := first.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		r.config.Resume = one.SessionID
		second := r.start()
		two := r.prompt(t.Context(), second, "Which word was it?")
		if err := second.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if one.Text != "Remembered." || two.Text != "It was plum." {
			t.Errorf("answers: %q, %q; errors %v, %v", one.Text, two.Text, one.Err, two.Err)
		}
		if one.SessionID == "" || one.SessionID != two.SessionID {
			t.Errorf("session ids: %q, %q", one.SessionID, two.SessionID)
		}
		s := r.session()
		if u := s.Usage; u.InputTokens != 4000 || u.OutputTokens != 400 {
			t.Errorf("usage over both processes: %+v", u)
		}
		if s.Turns != 4 {
			t.Errorf("%d turns over both processes", s.Turns)
		}
	})
}

func TestUnknownSessionToResume(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t, turn{"text": "Never said."}))
		r.config.Resume = "00000000-0000-4000-8000-000000000000"
		s, err := a.Start(t.Context(), r.config)
		if err != nil {
			return // refused before anything started
		}
		defer s.Close()
		result, err := s.Prompt(t.Context(), "Go on")
		if err == nil && (result.Success || result.Err == nil) {
			t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
		}
	})
}

func TestBadKey(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, `{"key": "the-right-one", "turns": [{"text": "Never said."}]}`)
		retries := 0
		r.config.Retries = &retries
		result, s := r.run("Do it")
		if result.Success || result.Outcome != session.OutcomeAuth || result.Err == nil {
			t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
		}
		if len(errorsOf(s, session.ErrorAuth)) == 0 {
			t.Error("no error of kind auth in the session")
		}
		if s.Outcome != session.OutcomeAuth {
			t.Errorf("session's outcome: %q", s.Outcome)
		}
	})
}
