// Package acp drives the agents of the Agent Client Protocol for real, against the scripted model
// on loopback: no key, no network. The table is the same for all of them; where agents truly
// differ, what they declare about themselves decides what is expected.
package acp

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/acp"
	"github.com/fit-eval/fit/agent/agenttest"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	sandbox.MaybeReaper()
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
	if a.Info().ID == "copilot" {
		unpacked := unpack(t, s.Config)
		s.Config.ExtraEnv = append(s.Config.ExtraEnv, "COPILOT_PKG_CACHE_HOME="+unpacked)
		s.Config.Installation.ReadPaths = append(s.Config.Installation.ReadPaths, unpacked)
	}
	s.Write("calc.go", "package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n")
	s.Write("Makefile", "test:\n\t@grep -q 'a + b' calc.go && echo ok || (echo FAIL; exit 1)\n")
	return s
}

// unpack lets copilot unpack itself once for all tests: it is 235 MB, which it would write into
// every home.
func unpack(t *testing.T, cfg agent.Config) string {
	t.Helper()
	dir, err := filepath.Abs("node_modules/.cache/copilot")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), cfg.Installation.Path)
	command.Env = append(slices.Clone(cfg.Environ), "COPILOT_SEA_EXTRACT_ONLY=1", "COPILOT_PKG_CACHE_HOME="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
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
