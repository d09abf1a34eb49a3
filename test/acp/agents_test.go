package acp

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/agenttest"
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

// politeness is the system prompt, and token that of the tool server.
const politeness, token = "POLITE-7", "s3cr3t-token"

// life is what the model does in TestALife, in two processes where the agent can be resumed. What
// is prompted for last comes first, because some agents repeat the prompts that were not answered.
func life(t *testing.T) turn {
	t.Helper()
	ask := call("mcp", "oracle/ask", "input", turn{"question": "ship it"})
	scenarios := []turn{again("Be slow", agenttest.Bash(slow))}
	for _, trouble := range slices.Backward(troubles) {
		scenarios = append(scenarios, turn{
			"name": trouble.name, "when": turn{"prompt": trouble.prompt()},
			"turns": []turn{{"text": "All of it.", "fault": trouble.fault}},
		})
	}
	return turn{
		"usage": turn{"input": 1000, "output": 100},
		"scenarios": append(scenarios, again("Touch", agenttest.Bash("touch made")),
			again("Ask the oracle", ask, agenttest.Says("Yes it is."))),
		"turns": []turn{
			{"text": "I'll read calc.go.", "calls": []turn{{"read": "calc.go"}}},
			call("edit", "calc.go", "old", "return a - b", "new", "return a + b"),
			call("bash", look(t)),
			agenttest.Says("Add adds now."),
			agenttest.Says("Indeed."),
			agenttest.Bash(slow),
			agenttest.Says("Went on."),
		},
	}
}

// again is a model that answers a prompt with the same turns, however often it is given.
func again(prompt string, turns ...turn) turn {
	turns[0]["label"] = "first"
	return turn{"name": prompt, "when": turn{"prompt": prompt}, "turns": append(turns, turn{"goto": "first"})}
}

// TestALife: read, edit, run the tests, answer, and once more in the same process, all of it
// through the gateway, where the key stays; the agent reaches nothing else. Then a command is
// cancelled, and the conversation continues. In a new process, where the agent can be resumed, it
// uses a tool of the team with its first prompt, is cancelled in an open request for permission,
// meets a model that fails in every way, and is killed in the middle of a command. Both are started
// with a system prompt, and leave nothing behind.
func TestALife(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		s := newScripted(t, a, life(t))
		show(t, s)
		s.Config.SystemPrompt = "Always be " + politeness + "."
		outside := s.Config
		wire := throughGateway(t, s)
		id, pace := atWork(t, a, s, wire)
		s.Forget()
		outside.ExtraEnv = s.Config.ExtraEnv
		s.Config = outside
		inTrouble(t, a, s, id, pace)
	})
}

// atWork is the first process. It returns the id of the conversation, and how long the agent takes
// here and now to answer.
func atWork(t *testing.T, a *acp.Agent, s *agenttest.Stage, wire *wire) (id string, pace time.Duration) {
	t.Helper()
	wait := begun(t, s.Config.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	talk := s.Start()
	results := []agent.Result{s.Prompt(t.Context(), talk, "Fix Add so that the tests pass")}
	start := time.Now()
	results = append(results, s.Prompt(t.Context(), talk, "Sure?"))
	pace = time.Since(start)
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
	go func() { wait(); cancel() }()
	cancelled := s.Prompt(ctx, talk, "Take your time")
	if cancelled.Success || !cancelled.Aborted || cancelled.Outcome != session.OutcomeCancelled {
		t.Errorf("cancelled: outcome %q, aborted %v, error %v", cancelled.Outcome, cancelled.Aborted, cancelled.Err)
	}
	again := s.Prompt(t.Context(), talk, "Go on")
	if !again.Success || again.Text != "Went on." || again.SessionID != results[0].SessionID {
		t.Errorf("after the cancel: outcome %q, text %q, error %v", again.Outcome, again.Text, again.Err)
	}
	if err := talk.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.CheckAlone()
	// An agent that is slow is cancelled before it has reported the command that it runs.
	calls := counted(s.Session(), session.ToolBash)
	if turns := s.Session().Turns; calls > 1 || turns != 6+calls {
		t.Errorf("%d shell calls, %d turns", calls, turns)
	}
	wire.check(t, s, s.Session().Turns)
	return again.SessionID, pace
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
