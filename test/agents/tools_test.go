package agents

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
)

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
