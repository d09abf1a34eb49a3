package teams

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pair is a supervisor that has a file written, finds fault with it, tries to do the work itself,
// which it cannot, and is content the second time. Both run the agent's program, which gives a
// verdict in the supervisor's name: the agent of its own accord, the supervisor as a judge who runs
// the tests does.
const pair = `{"scenarios":[
  {"name":"supervisor","when":{"system":"You lead one agent"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Write a greeting to hello.txt."}}]},
    {"text":"Waiting."},
    {"calls":[{"bash":"cat work/hello.txt; echo hello supervisor > work/hello.txt; echo mine > work/mine.txt; echo mine > mine.txt; echo tried $((1+1)) times"}]},
    {"calls":[{"bash":"node work/forge.cjs"}]},
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Greet the world, not nobody."}}]},
    {"text":"Waiting."},
    {"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It greets the world."}}]},
    {"text":"Over."}]}],
 "turns":[
    {"calls":[{"bash":"echo hello nobody > hello.txt; node forge.cjs"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Written."}}]},
    {"text":"Done."},
    {"calls":[{"bash":"cp hello.txt before.txt; echo hello world > hello.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Corrected."}}]},
    {"text":"Done."}]}`

// TestASupervisedPairOfTwoVendors lets one vendor's agent supervise another's. The supervisor may
// look at the work, but the work is the agent's; the verdict is the supervisor's alone.
func TestASupervisedPairOfTwoVendors(t *testing.T) {
	pairs := [][2]string{{"claude-code", "codex"}, {"codex", "claude-code"}, {"pi-agent", "codex"}}
	if soaking() {
		pairs = append(pairs, [2]string{"codex", "pi-agent"}, [2]string{"pi-agent", "claude-code"})
	}
	for _, vendors := range pairs {
		lead, worker := vendors[0], vendors[1]
		t.Run(lead+" leads "+worker, func(t *testing.T) {
			t.Parallel()
			m := gather(t, pair, lead, worker)
			m.write(t, "work/forge.cjs", forge(true))
			m.hold(t, "supervise", "--isolation", "bwrap", "--agent", worker, "--agent-model", "gpt-5.5",
				"--lead-agent", lead, "--lead-model", "gpt-5.5", "--agent-cwd", "work",
				"--task-text", "Have hello.txt greet the world.",
				"--output", "trace.ndjson", "--session-timeout", patience)
			m.check(t, map[string]string{"supervisor": lead, "agent": worker},
				map[string]string{"agent": "Written.Corrected."})
			for name, want := range map[string]string{"hello.txt": "hello world\n", "before.txt": "hello nobody\n"} {
				if greeting, err := os.ReadFile(filepath.Join(m.dir, "work", name)); err != nil ||
					string(greeting) != want {
					t.Errorf("%s: %q, %v", name, greeting, err)
				}
			}
			for _, name := range []string{"mine.txt", "work/mine.txt"} {
				if _, err := os.Stat(filepath.Join(m.dir, name)); err == nil {
					t.Errorf("the supervisor wrote %s", name)
				}
			}
			if !strings.Contains(m.asked(), "tried 2 times") {
				t.Error("the supervisor did not run its command")
			}
			m.checkForged(t)
		})
	}
}
