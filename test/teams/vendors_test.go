package teams

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// panel is a facilitator that asks everybody at once and concludes when all three have answered.
// Each participant looks at a file in its own way first.
const panel = `{"scenarios":[
  {"name":"facilitator","when":{"tool":"orchestration/Conclude"},"turns":[
    {"calls":[{"mcp":"orchestration/RollCall","input":{}}]},
    {"text":"I ask everybody.","calls":[
      {"mcp":"orchestration/Ask","input":{"question":"Is it safe?","to":"security"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it tested?","to":"tests"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it documented?","to":"docs"}}]},
    {"text":"Waiting."},
    {"label":"collect","cases":[{"when":{"all":[{"any_prompt":"[answer#1]"},{"any_prompt":"[answer#2]"},{"any_prompt":"[answer#3]"}]},"goto":"end"}],"text":"I wait for the others."},
    {"goto":"collect"},
    {"label":"end","calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"Safe, tested and documented."}}]},
    {"text":"Over."}]},
  {"name":"security","when":{"system":"You are the security engineer"},"turns":[
    {"calls":[{"bash":"cat notes.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Safe, says claude-code."}}]},{"text":"Done."}]},
  {"name":"tests","when":{"system":"You are the tester"},"turns":[
    {"calls":[{"bash":"cat notes.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Tested, says codex."}}]},{"text":"Done."}]},
  {"name":"docs","when":{"system":"You are the writer"},"turns":[
    {"calls":[{"bash":"cat notes.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Documented, says pi."}}]},{"text":"Done."}]}
]}`

// TestThreeVendorsUnderOneFacilitator lets Claude Code, Codex and pi take part in one session. Who
// plays whom is said by a profile, and by the command line.
func TestThreeVendorsUnderOneFacilitator(t *testing.T) {
	t.Parallel()
	m := gather(t, panel, "claude-code", "codex", "pi-agent")
	m.write(t, "notes.txt", "all is well\n")
	m.write(t, ".claude/agents/security.md", "---\nagent: claude-code\n---\nYou are the security engineer.\n")
	m.write(t, ".claude/agents/tests.md", "You are the tester.\n")
	m.write(t, ".claude/agents/docs.md", "You are the writer.\n")
	m.hold(t, "facilitate", "--agent", "builtin", "--agent-profiles",
		"security,tests=codex:gpt-5.5,docs=pi-agent:scripted-model", "--task-text", "Review the release.",
		"--output", "trace.ndjson", "--session-timeout", "110s")
	m.check(t, map[string]string{
		"facilitator": "builtin", "security": "claude-code", "tests": "codex",
		"docs": "pi-agent",
	},
		map[string]string{
			"security": "Safe, says claude-code.", "tests": "Tested, says codex.",
			"docs": "Documented, says pi.",
		})
	if strings.Contains(m.tail(), "Bearer ") {
		t.Error("a token is in the trace")
	}
}

// pair is a supervisor that has a file written, finds fault with it, tries to do the work itself,
// which it cannot, and is content the second time.
const pair = `{"scenarios":[
  {"name":"supervisor","when":{"system":"You lead one agent"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Write a greeting to hello.txt."}}]},
    {"text":"Waiting."},
    {"calls":[{"bash":"cat work/hello.txt; echo hello supervisor > work/hello.txt; echo mine > work/mine.txt; echo mine > mine.txt; echo tried $((1+1)) times"}]},
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Greet the world, not nobody."}}]},
    {"text":"Waiting."},
    {"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It greets the world."}}]},
    {"text":"Over."}]}],
 "turns":[
    {"calls":[{"bash":"echo hello nobody > hello.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Written."}}]},
    {"text":"Done."},
    {"calls":[{"bash":"cp hello.txt before.txt; echo hello world > hello.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Corrected."}}]},
    {"text":"Done."}]}`

// TestASupervisedPairOfTwoVendors lets one vendor's agent supervise another's. The supervisor may
// look at the work, but the work is the agent's.
func TestASupervisedPairOfTwoVendors(t *testing.T) {
	for _, vendors := range [][2]string{
		{"claude-code", "codex"},
		{"codex", "pi-agent"},
		{"pi-agent", "claude-code"},
	} {
		lead, worker := vendors[0], vendors[1]
		t.Run(lead+" leads "+worker, func(t *testing.T) {
			t.Parallel()
			m := gather(t, pair, lead, worker)
			m.write(t, "work/README.md", "Nothing here yet.\n")
			m.hold(
				t,
				"supervise",
				"--agent",
				worker,
				"--agent-model",
				"gpt-5.5",
				"--lead-agent",
				lead,
				"--lead-model",
				"gpt-5.5",
				"--agent-cwd",
				"work",
				"--task-text",
				"Have hello.txt greet the world.",
				"--output",
				"trace.ndjson",
				"--session-timeout",
				"110s",
			)
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
		})
	}
}
