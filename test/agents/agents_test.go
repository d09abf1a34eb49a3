package agents

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// fixIt is a prompt, and fixAdd what the model does about it: it reads, edits, tests, and says so.
const fixIt = "Fix Add so that the tests pass"

var fixAdd = []turn{
	{
		"thinking": "I should look first.", "text": "I'll read calc.go.",
		"calls": []turn{call("read", "calc.go")},
	},
	{"calls": []turn{call("edit", "calc.go", "old", "return a - b", "new", "return a + b")}},
	{"calls": []turn{call("bash", "make test")}},
	{"text": "Add adds now, and the tests pass."},
}

// TestHappyPathWithEditAndTestRun: one process for each prompt. The second continues the
// conversation of the first, with a tool of a server. What was recorded of the first is then
// answered without a model, in another directory, where the agent says and does the same.
func TestHappyPathWithEditAndTestRun(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t, slices.Concat(fixAdd, askBob)...))
		path := filepath.Join(t.TempDir(), "agent.calls")
		kept := r.keep(gateway.RecordConfig{Path: path})
		result, s := r.run(fixIt)
		checkFixed(t, r, result, s)
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
		checkRecord(t, path, lane)
		r.kept, r.config.Resume = nil, result.SessionID
		asked := r.attach(oracleToken)
		resumed, both := r.run(askIt)
		checkAsked(t, both, resumed, asked)
		if resumed.SessionID != result.SessionID || resumed.Turns != 2 || both.Turns != 6 {
			t.Errorf("resumed: id %q, then %q; %d turns of %d", result.SessionID, resumed.SessionID, resumed.Turns,
				both.Turns)
		}
		if u := both.Usage; u.InputTokens != 6000 || u.OutputTokens != 600 {
			t.Errorf("usage over both processes: %+v", u)
		}
		if alive := r.survivors(); len(alive) > 0 {
			t.Errorf("left behind: %q", alive)
		}
		checkReplay(t, r, path, result)
		if oneOfEach(a.Info()) {
			checkReplayModes(t, r, path, result)
		}
	})
}

// TestALife: one process for all prompts, with a system prompt that is appended and an endpoint
// with a path. It does the task, answers once more, is interrupted in a command, continues, and
// uses a tool of a server. Then another has to do without the tool with which the first has read.
func TestALife(t *testing.T) {
	longLived := func(info agent.Info) bool { return info.Capabilities.LongLived != agent.Unsupported }
	eachAgentThat(t, longLived, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t, slices.Concat(fixAdd, []turn{
			sayPassword, {"calls": []turn{call("bash", slow, "timeout_ms", 300000)}}, {"text": "Went on."},
		}, askBob)...))
		r.config.OneShot = false
		r.config.ModelURL += "/s/" + scriptName
		knows := ignorance
		if a.Info().Capabilities.SystemPromptAppend != agent.Unsupported {
			r.config.SystemPrompt, knows = password, knowledge
		}
		path := filepath.Join(t.TempDir(), "agent.calls")
		kept := r.keep(gateway.RecordConfig{Path: path})
		asked := r.attach(oracleToken)
		talk := r.start()
		first := r.prompt(t.Context(), talk, fixIt)
		checkFixed(t, r, first, r.session())
		second := r.prompt(t.Context(), talk, "What do you know?")
		if second.Text != knows || second.SessionID != first.SessionID || second.Turns != 1 ||
			second.Usage.InputTokens != 1000 || second.Usage.OutputTokens != 100 {
			t.Errorf("second: text %q, id %q, %d turns, usage %+v, error %v", second.Text, second.SessionID,
				second.Turns, second.Usage, second.Err)
		}
		r.interrupt(talk)
		if again := r.prompt(t.Context(), talk, "Go on"); !again.Success || again.Text != "Went on." {
			t.Errorf("after the interrupt: outcome %q, text %q, error %v", again.Outcome, again.Text, again.Err)
		}
		answered := r.prompt(t.Context(), talk, askIt)
		s := r.session()
		checkAsked(t, s, answered, asked)
		if err := errors.Join(talk.Close(), kept.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
		if alive := r.survivors(); len(alive) > 0 {
			t.Errorf("left behind: %q", alive)
		}
		checkRecord(t, path, lane)
		if read := calls(s, session.ToolRead); len(read) > 0 && oneOfEach(a.Info()) {
			checkWithout(t, a, read[0].NativeName)
		}
	})
}

// checkFixed looks at how the task went.
func checkFixed(t *testing.T, r *rig, result agent.Result, s *session.EnrichedSession) {
	t.Helper()
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

// trouble are the words of the real services, because some agents go by them.
var trouble = map[int]string{429: "rate limit exceeded", 500: "internal server error", 529: "Overloaded"}

// TestFailuresThatPass: of the model, each once, and of the agent's own calls. An answer that comes
// late is an answer, and one that says ten times what it used costs what it really used.
func TestFailuresThatPass(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		turns := []turn{
			{"calls": []turn{call("read", "calc.go")}},
			{"calls": []turn{call("bash", "make test")}},
			{"calls": []turn{call("edit", "calc.go", "old", "return a * b", "new", "return a + b")}},
			{"calls": []turn{call("edit", "calc.go", "old", "return a - b", "new", "return a + b")}},
			{"calls": []turn{call("bash", "make test")}},
			{"text": "Recovered."},
		}
		for i, status := range []int{429, 500, 529} {
			turns[i]["fault"] = turn{"status": status, "message": trouble[status], "times": 1, "retry_after": "0"}
		}
		r := newRig(t, a, scriptOf(t, turns...))
		r.plan(`seed: 3
faults:
  - {kind: slow-tokens, chance: 0.5, delayMs: 5}
  - {kind: wrong-usage, chance: 1}
`)
		result, s := r.run("Fix Add")
		if !result.Success || result.Text != "Recovered." || result.Turns != len(turns) {
			t.Errorf("result: outcome %q after %d turns, text %q, error %v", result.Outcome, result.Turns, result.Text,
				result.Err)
		}
		if u := result.Usage; u.InputTokens != 6000 || u.OutputTokens != 600 || len(r.met) != 2 {
			t.Errorf("usage %+v, met %v", u, r.met)
		}
		checkRecovery(t, a, s)
		retries := errorsOf(s, session.ErrorRetry)
		if a.Info().Capabilities.ShowsRetries != agent.Unsupported && len(retries) != len(trouble) {
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

// checkRecovery looks for the calls that failed, and for what came after them.
func checkRecovery(t *testing.T, a agent.Agent, s *session.EnrichedSession) {
	t.Helper()
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
	for _, kind := range []string{session.FirstErrorRecovery, session.FirstFileEdit} {
		if _, ok := reached[kind]; !ok {
			t.Errorf("%s was not noticed: %v", kind, s.Milestones)
		}
	}
}

// TestATurnLimitHoldsForEachPrompt: two prompts take as many turns as they may, and the third would
// take more. The model does not answer then, so that nothing but the limit ends it. Whether the
// calls of the last turn are run is up to the agent, unless the gateway holds the limit: it asks
// nothing after the last turn that is allowed. The agent has a system prompt instead of its own.
func TestATurnLimitHoldsForEachPrompt(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		if a.Info().Capabilities.MaxTurns == agent.Unsupported {
			t.Fatal("every agent must have a turn limit, its own or ours")
		}
		step := func(name string) turn { return turn{"calls": []turn{call("bash", "echo "+name+" >> steps")}} }
		three := step("three")
		three["fault"] = turn{"stream": "hang"}
		r := newRig(t, a, scriptOf(t, step("a"), sayPassword, step("b"), sayPassword, step("one"), step("two"), three))
		r.config.MaxTurns, r.config.OneShot = 2, false
		knows := ignorance
		if a.Info().Capabilities.SystemPromptReplace != agent.Unsupported {
			r.config.SystemPrompt, r.config.ReplaceSystemPrompt, knows = password, true, knowledge
		}
		s := r.start()
		for i := range 2 {
			result := r.prompt(t.Context(), s, "Next")
			if !result.Success || result.Turns != 2 || result.Text != knows {
				t.Errorf("prompt %d: outcome %q after %d turns, text %q, error %v", i+1, result.Outcome, result.Turns,
					result.Text, result.Err)
			}
		}
		result := r.prompt(t.Context(), s, "Count")
		if result.Success || result.Outcome != session.OutcomeMaxTurns {
			t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
		}
		if got := strings.Join(strings.Fields(r.file("steps")), " "); got != "a b one two" && got != "a b one" {
			t.Errorf("steps taken: %q", got)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if turns := r.session().Turns; turns > 7 {
			t.Errorf("%d turns", turns)
		}
		if a.Info().Capabilities.MaxTurns != agent.Enforced {
			return
		}
		if answered, refused := countCalls(t, r.ended); answered != 6 || refused != 1 || result.Turns != 2 ||
			!strings.Contains(r.file("steps"), "two") {
			t.Errorf("the model answered %d times, want 6; %d calls were refused, want 1; %d turns, steps taken: %q",
				answered, refused, result.Turns, r.file("steps"))
		}
	})
}

// slow says that it has begun through a pipe and then takes forever, in a session of its own, as
// the agents' shells do.
const slow = "echo begun > begun; while :; do sleep 1; done"

// interrupt gives a prompt that runs a command, and cancels it when the command runs and the trace
// says so.
func (r *rig) interrupt(talk agent.Session) {
	r.t.Helper()
	path := filepath.Join(r.config.Dir, "begun")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	before := len(r.shells())
	go func() {
		_, _ = os.ReadFile(path) // waits for the command
		for len(r.shells()) == before && ctx.Err() == nil {
			<-r.told
		}
		cancel()
	}()
	result := r.prompt(ctx, talk, "Take your time")
	stopped := result.Outcome == session.OutcomeCancelled || result.Outcome == session.OutcomeAborted
	if result.Success || !result.Aborted || !stopped {
		r.t.Errorf("interrupted: success %v, aborted %v, outcome %q, error %v", result.Success, result.Aborted,
			result.Outcome, result.Err)
	}
	if got := len(r.shells()) - before; got != 1 {
		r.t.Errorf("%d shell calls in the session", got)
	}
}

// shells are the calls of the shell that the trace has so far.
func (r *rig) shells() []session.ToolCall {
	file, err := os.Open(r.trace)
	if err != nil {
		return nil
	}
	defer file.Close()
	sessions, err := session.Read(file, catalog.Default().Dialects(), session.Options{})
	if err != nil || len(sessions) != 1 {
		return nil
	}
	return calls(sessions[0], session.ToolBash)
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
