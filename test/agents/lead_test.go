package agents

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
)

// TestALeadIsRehearsedWithItsAgent: the first request of an agent that has a lead is the one that
// it makes in the session of the two, with the tools by which it answers, even if the lead's own
// tools are hidden behind a search, as Codex hides them from a model that it knows.
func TestALeadIsRehearsedWithItsAgent(t *testing.T) {
	t.Parallel()
	for _, members := range []string{
		"agent:builtin,model:gpt-5.5,lead:codex,leadModel:gpt-5.5",
		"agent:codex,model:scripted-model,lead:builtin,leadModel:gpt-5.5",
		"agent:pi-agent,model:gpt-5.5,lead:claude-code,leadModel:claude-sonnet-4-5",
	} {
		t.Run(members, func(t *testing.T) {
			t.Parallel()
			e := newExperiments(t)
			_, _, said := e.run("--arm", "a="+members+",skills:greetings")
			kept, err := experiment.ReadRehearsal(filepath.Join(e.dir, "results"))
			if err != nil || kept == nil || len(kept.Arms) != 1 {
				t.Fatalf("%+v, %v\n%s", kept, err, said)
			}
			given := kept.Arms[0].Treatment
			if !slices.ContainsFunc(given.Tools, func(name string) bool { return strings.Contains(name, "Answer") }) {
				t.Errorf("the agent was offered %q\n%s", given.Tools, said)
			}
		})
	}
}
