package teams

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// panel is a facilitator that asks everybody at once and concludes when all four have answered.
// Each participant looks at a file first, and at the machine around it.
var panel = `{"scenarios":[
  {"name":"facilitator","when":{"tool":"orchestration/Conclude"},"turns":[
    {"calls":[{"mcp":"orchestration/RollCall","input":{}}]},
    {"text":"I ask everybody.","calls":[
      {"mcp":"orchestration/Ask","input":{"question":"Is it safe?","to":"security"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it tested?","to":"tests"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it documented?","to":"docs"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it good?","to":"critic"}}]},
    {"text":"Waiting."},
    {"label":"collect","cases":[{"when":{"all":[{"any_prompt":"[answer#1]"},{"any_prompt":"[answer#2]"},` +
	`{"any_prompt":"[answer#3]"},{"any_prompt":"[answer#4]"}]},"goto":"end"}],"text":"I wait for the others."},
    {"goto":"collect"},{"goto":"collect"},{"goto":"collect"},
    {"label":"end","calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"Safe, tested, documented and good."}}]},
    {"text":"Over."}]},` +
	member("security", "You are the security engineer", "Safe.") + "," +
	member("tests", "You are the tester", "Tested.") + "," +
	member("docs", "You are the writer", "Documented.") + "," +
	member("critic", "You judge what others did", "Good.") + `],
  "turns":[{"text":"A title."}]}`

// member is the script of a participant, who is known by its profile.
func member(name, profile, answer string) string {
	return `{"name":"` + name + `","when":{"any":[{"system":"` + profile + `"},{"any_prompt":"` + profile + `"}]},"turns":[
    {"calls":[{"bash":"cat notes.txt; python3 reach.py > reached-` + name + `.txt"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"` + answer + `"}}]},{"text":"Done."}]}`
}

// reach tries to reach a service of the machine.
const reach = `import socket, sys
try:
    socket.create_connection(("127.0.0.1", PORT), 5).close()
    print("open")
except OSError:
    print("closed")
`

// TestFiveVendorsUnderOneFacilitator: an agent of the Agent Client Protocol leads, agents of four
// other vendors take part, two of them by that protocol and one as a judge of the others. Who plays
// whom is said by profiles, and by the command line. All of them reach their model and the tools of
// the session, and nothing else.
func TestFiveVendorsUnderOneFacilitator(t *testing.T) {
	t.Parallel()
	m := gather(t, panel, "opencode", "claude-code", "codex", "gemini", "qwen-code")
	outside, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	port := outside.Addr().(*net.TCPAddr).Port
	m.write(t, "notes.txt", "all is well\n")
	m.write(t, "reach.py", strings.Replace(reach, "PORT", strconv.Itoa(port), 1))
	m.write(t, ".claude/agents/security.md", "---\nagent: claude-code\n---\nYou are the security engineer.\n")
	m.write(t, ".claude/agents/tests.md", "You are the tester.\n")
	m.write(t, ".claude/agents/docs.md", "You are the writer.\n")
	m.write(t, ".claude/agents/critic.md", "You judge what others did.\n")
	m.hold(t, "facilitate", "--agent", "builtin", "--lead-agent", "opencode", "--lead-model", "scripted-model",
		"--agent-profiles", "security,tests=codex:gpt-5.5,docs=gemini:scripted-model,critic=qwen-code:scripted-model",
		"--task-text", "Review the release.", "--network", "model", "--isolation", "bwrap",
		"--output", "trace.ndjson", "--session-timeout", "110s")
	m.check(t, map[string]string{
		"facilitator": "opencode", "security": "claude-code", "tests": "codex", "docs": "gemini",
		"critic": "qwen-code",
	}, map[string]string{"security": "Safe.", "tests": "Tested.", "docs": "Documented.", "critic": "Good."})
	for _, name := range []string{"security", "tests", "docs", "critic"} {
		if got, err := os.ReadFile(filepath.Join(m.dir, "reached-"+name+".txt")); string(got) != "closed\n" {
			t.Errorf("what the machine has for others is %q for %s, %v", got, name, err)
		}
	}
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
