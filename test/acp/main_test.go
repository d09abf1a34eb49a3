// Package acp drives the agents of the Agent Client Protocol for real, against the scripted model
// on loopback: no key, no network. The table is the same for all of them; where agents truly
// differ, what they declare about themselves decides what is expected.
package acp

import (
	"os"
	"slices"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	agenttest.Overlap()
	os.Exit(m.Run())
}

// driven are the agents that are installed here.
var driven = []string{"opencode", "qwen-code", "copilot", "cline", "gemini"}

// eachAgent runs a test for every agent that is installed here, beside all other tests.
func eachAgent(t *testing.T, test func(t *testing.T, a *acp.Agent)) {
	t.Helper()
	t.Parallel()
	for _, a := range acp.Agents() {
		if !slices.Contains(driven, string(a.Info().ID)) {
			continue
		}
		t.Run(string(a.Info().ID), func(t *testing.T) {
			t.Parallel()
			test(t, a.(*acp.Agent))
		})
	}
}

type turn = agenttest.Turn

// model is the name of the scripted model, which answers to any.
const model = "scripted-model"

// newScripted is an agent with a script.
func newScripted(t *testing.T, a agent.Agent, script turn) *agenttest.Stage {
	t.Helper()
	s := agenttest.NewStageIn(t, "node_modules/.bin", a, model, script)
	s.Config.OneShot = false
	s.UnpackCopilot()
	s.Write("calc.go", "package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n")
	s.Write("Makefile", "test:\n\t@grep -q 'a + b' calc.go && echo ok || (echo FAIL; exit 1)\n")
	return s
}

func call(verb string, value any, more ...any) turn {
	c := turn{verb: value}
	for i := 0; i+1 < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return turn{"calls": []turn{c}}
}

// counted returns how often a tool was used.
func counted(s *session.EnrichedSession, effective string) int {
	n := 0
	for _, event := range s.Events {
		if event.Tool != nil && event.Tool.Effective() == effective {
			n++
		}
	}
	return n
}
