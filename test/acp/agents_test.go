package acp

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/acp"
	"github.com/fit-eval/fit/agent/agenttest"
	"github.com/fit-eval/fit/session"
)

// show prints the session of a test that failed.
func show(t *testing.T, s *agenttest.Stage) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		events := s.Events()
		for i, event := range events {
			events[i] = event[:min(len(event), 500)]
		}
		t.Logf("the end of the stream:\n%s", strings.Join(events[max(0, len(events)-25):], "\n"))
	})
}

// TestTheWholeTask: read, edit, run the tests, answer, and then once more in the same process. All
// of it goes through the gateway, where the key stays, and the agent reaches nothing else.
func TestTheWholeTask(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		s := newStage(t, a,
			turn{"text": "I'll read calc.go.", "calls": []turn{{"read": "calc.go"}}},
			call("edit", "calc.go", "old", "return a - b", "new", "return a + b"),
			call("bash", look(t)),
			agenttest.Says("Add adds now."),
			agenttest.Says("Indeed."))
		show(t, s)
		wire := throughGateway(t, s)
		results := s.Run("Fix Add so that the tests pass", "Sure?")
		for i, want := range []string{"Add adds now.", "Indeed."} {
			r := results[i]
			if !r.Success || r.Text != want || r.SessionID == "" || r.SessionID != results[0].SessionID {
				t.Errorf("prompt %d: outcome %q, text %q, id %q, error %v", i+1, r.Outcome, r.Text, r.SessionID, r.Err)
			}
		}
		if !strings.Contains(s.File("calc.go"), "a + b") {
			t.Errorf("calc.go was not fixed:\n%s", s.File("calc.go"))
		}
		checkTask(t, a, s.Session(), results)
		wire.check(t, s, 5)
	})
}

func checkTask(t *testing.T, a *acp.Agent, s *session.EnrichedSession, results []agent.Result) {
	t.Helper()
	if s.Outcome != session.OutcomeSuccess || s.Turns != 5 || s.Agent != a.Info().ID || s.ParseErrors > 0 {
		t.Errorf("outcome %q after %d turns of %q, %d broken lines", s.Outcome, s.Turns, s.Agent, s.ParseErrors)
	}
	for effective, want := range map[string]int{session.ToolRead: 1, session.ToolEdit: 1, session.ToolTest: 1} {
		if got := counted(s, effective); got != want {
			t.Errorf("%d calls of %s, want %d", got, effective, want)
		}
	}
	reached := map[string]bool{}
	for _, m := range s.Milestones {
		reached[m.Kind] = true
	}
	for _, kind := range []string{
		session.FirstFileRead, session.FirstFileEdit, session.FirstTestRun, session.TaskCompletion,
	} {
		if !reached[kind] {
			t.Errorf("milestone %s was not reached", kind)
		}
	}
	switch told := a.Info().Capabilities.Usage != agent.Unsupported; {
	case told && (s.Usage.InputTokens != 5000 || s.Usage.OutputTokens != 500 || s.Usage.Partial ||
		results[1].Usage.InputTokens != 1000):
		t.Errorf("usage %+v; of the second prompt %+v", s.Usage, results[1].Usage)
	case !told && s.Usage.TotalTokens > 0 && !s.Usage.Partial:
		t.Errorf("usage of an agent that tells none: %+v", s.Usage)
	}
}
