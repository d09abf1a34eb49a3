package agents

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
)

// TestAgentsWorkWithoutToolsOfTheVendor: what --deny-server-tools leaves is what agents work with,
// and nothing of theirs is taken for a tool of the vendor.
func TestAgentsWorkWithoutToolsOfTheVendor(t *testing.T) {
	eachAgentThat(t, hasProcess, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t, fixAdd...))
		r.deny = true
		result, s := r.run(fixIt)
		checkFixed(t, r, result, s)
		for _, call := range r.ended {
			for _, kind := range call.ServerTools {
				if !strings.HasPrefix(kind, "web_search") && !strings.HasPrefix(kind, "image_generation") {
					t.Errorf("%s was taken out", kind)
				}
			}
		}
	})
}

// TestAListOfToolsIsAllThatIsOffered: agents offer other tools to some models, and an arm with a
// list of tools has none of them.
func TestAListOfToolsIsAllThatIsOffered(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string][]string{
		"opencode,model:gpt-5":          {"bash"},
		"cline,model:gpt-5":             {"run_commands"},
		"cline,model:claude-sonnet-4-5": {"run_commands"},
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			e := newExperiments(t)
			_, _, said := e.run("--arm", "a=agent:"+agent+",tools:Bash")
			kept, err := experiment.ReadRehearsal(filepath.Join(e.dir, "results"))
			if err != nil || kept == nil || len(kept.Arms) != 1 {
				t.Fatalf("%+v, %v\n%s", kept, err, said)
			}
			if got := kept.Arms[0].Treatment.Tools; !slices.Equal(got, want) {
				t.Errorf("%s offers %q, want %q", agent, got, want)
			}
		})
	}
}
