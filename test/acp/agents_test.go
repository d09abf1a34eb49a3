package acp

import (
	"context"
	"strings"
	"testing"
	"time"

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

// politeness is the system prompt, and token that of the tool server.
const politeness, token = "POLITE-7", "s3cr3t-token"

// life is what the model does in TestALife, in two processes where the agent can be resumed.
func life(t *testing.T) turn {
	t.Helper()
	ask, yes := call("mcp", "oracle/ask", "input", turn{"question": "ship it"}), agenttest.Says("Yes it is.")
	return turn{
		"usage": turn{"input": 1000, "output": 100},
		"scenarios": []turn{
			// First, because some agents repeat the prompts that were not answered.
			{"name": "slow", "when": turn{"prompt": "Be slow"}, "turns": []turn{agenttest.Bash(slow)}},
			{
				"name": "key", "when": turn{"prompt": "With a bad key"},
				"turns": []turn{{"text": "No.", "fault": turn{"status": 401, "message": "invalid API key"}}},
			},
			{
				"name":  "another conversation",
				"when":  turn{"any_prompt": "Ask the oracle", "not": turn{"any_prompt": "Fix Add"}},
				"turns": []turn{ask, yes},
			},
		},
		"turns": []turn{
			{"text": "I'll read calc.go.", "calls": []turn{{"read": "calc.go"}}},
			call("edit", "calc.go", "old", "return a - b", "new", "return a + b"),
			call("bash", look(t)),
			agenttest.Says("Add adds now."),
			agenttest.Says("Indeed."),
			agenttest.Bash(slow),
			agenttest.Says("Went on."),
			ask, yes,
		},
	}
}

// TestALife: read, edit, run the tests, answer, and once more in the same process, all of it
// through the gateway, where the key stays; the agent reaches nothing else. Then a command is
// cancelled, and the conversation continues. In a new process, where the agent can be resumed, it
// uses a tool of the team with its first prompt, meets a model that does not know its key, and is
// closed in the middle of a command. Both are started with a system prompt, and leave nothing
// behind.
func TestALife(t *testing.T) {
	eachAgent(t, func(t *testing.T, a *acp.Agent) {
		s := newScripted(t, a, life(t))
		show(t, s)
		s.Config.SystemPrompt = "Always be " + politeness + "."
		outside := s.Config
		wire := throughGateway(t, s)
		id := atWork(t, a, s, wire)
		s.Forget()
		outside.ExtraEnv = s.Config.ExtraEnv
		s.Config = outside
		inATeam(t, a, s, id)
	})
}

// atWork is the first process. It returns the id of the conversation.
func atWork(t *testing.T, a *acp.Agent, s *agenttest.Stage, wire *wire) string {
	t.Helper()
	wait := begun(t, s.Config.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	talk := s.Start()
	results := []agent.Result{
		s.Prompt(t.Context(), talk, "Fix Add so that the tests pass"), s.Prompt(t.Context(), talk, "Sure?"),
	}
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
	wire.check(t, s, 6)
	return again.SessionID
}

// inATeam is the second process.
func inATeam(t *testing.T, a *acp.Agent, s *agenttest.Stage, id string) {
	t.Helper()
	url, asked := oracle(t, token)
	s.Config.MCPServers = []agent.MCPServer{{
		Name: "oracle", URL: url, Headers: map[string]string{"Authorization": "Bearer " + token},
	}}
	resumes := a.Info().Capabilities.Resume != agent.Unsupported
	if resumes {
		s.Config.Resume = id
	}
	s.Config.Grace = 6 * time.Second // some do not end by themselves when they run a command
	talk := s.Start()
	resumed := s.Prompt(t.Context(), talk, "Ask the oracle")
	if !resumed.Success || resumed.Text != "Yes it is." || resumed.Turns != 2 || (resumed.SessionID == id) != resumes {
		t.Errorf("resumed: outcome %q, text %q, id %q, %d turns, error %v", resumed.Outcome, resumed.Text,
			resumed.SessionID, resumed.Turns, resumed.Err)
	}
	refused := s.Prompt(t.Context(), talk, "With a bad key")
	if refused.Success || refused.Aborted || refused.Outcome != session.OutcomeAuth || refused.Err == nil {
		t.Errorf("a bad key: outcome %q, error %v", refused.Outcome, refused.Err)
	}
	wait := begun(t, s.Config.Dir)
	go func() { wait(); _ = talk.Close() }()
	if ended := s.Prompt(t.Context(), talk, "Be slow"); ended.Success || ended.Outcome == session.OutcomeAuth {
		t.Errorf("closed in the middle of a command: outcome %q, error %v", ended.Outcome, ended.Err)
	}
	if err := talk.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.CheckAlone()
	if asked.Load() != 1 {
		t.Errorf("the oracle was asked %d times", asked.Load())
	}
	if told := s.Told(); !strings.Contains(told, politeness) || !strings.Contains(told, "yes to ship it") {
		t.Errorf("the model was not told the system prompt or the tool's answer")
	}
	if strings.Contains(strings.Join(s.Events(), "\n"), token) {
		t.Error("the stream has the token of the tool server")
	}
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
