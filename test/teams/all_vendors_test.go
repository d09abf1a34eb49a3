package teams

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// panel is a facilitator that asks everybody at once and concludes when all five have answered.
// Each participant looks at a file first, and at the machine around it.
var panel = `{"scenarios":[
  {"name":"facilitator","when":{"tool":"orchestration/Conclude"},"turns":[
    {"calls":[{"mcp":"orchestration/RollCall","input":{}}]},
    {"text":"I ask everybody.","calls":[
      {"mcp":"orchestration/Ask","input":{"question":"Is it safe?","to":"security"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it tested?","to":"tests"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it documented?","to":"docs"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it quick?","to":"speed"}},
      {"mcp":"orchestration/Ask","input":{"question":"Is it good?","to":"critic"}}]},
    {"text":"Waiting."},
    {"label":"collect","cases":[{"when":{"all":[{"any_prompt":"[answer#1]"},{"any_prompt":"[answer#2]"},` +
	`{"any_prompt":"[answer#3]"},{"any_prompt":"[answer#4]"},{"any_prompt":"[answer#5]"}]},"goto":"end"}],"text":"I wait for the others."},
    {"goto":"collect"},{"goto":"collect"},{"goto":"collect"},{"goto":"collect"},
    {"label":"end","calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"Safe, tested, documented and good."}}]},
    {"text":"Over."}]},` +
	member("security", "You are the security engineer", "Safe.") + "," +
	member("tests", "You are the tester", "Tested.") + "," +
	member("docs", "You are the writer", "Documented.") + "," +
	member("speed", "You are the engineer of speed", "Quick.") + "," +
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

// TestFiveVendorsUnderOneFacilitator: an agent of the Agent Client Protocol leads, agents of five
// other vendors take part, two of them by that protocol and one as a judge of the others. Who plays
// whom is said by profiles, and by the command line. All of them reach their model and the tools of
// the session, and nothing else.
func TestFiveVendorsUnderOneFacilitator(t *testing.T) {
	t.Parallel()
	m := gather(t, panel, "opencode", "claude-code", "codex", "pi-agent", "gemini", "qwen-code")
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
	m.write(t, ".claude/agents/speed.md", "You are the engineer of speed.\n")
	m.write(t, ".claude/agents/critic.md", "You judge what others did.\n")
	m.hold(t, "facilitate", "--agent", "builtin", "--lead-agent", "opencode", "--lead-model", "scripted-model",
		"--agent-profiles", "security,speed=pi-agent:scripted-model,tests=codex:gpt-5.5,docs=gemini:scripted-model,"+
			"critic=qwen-code:scripted-model",
		"--task-text", "Review the release.", "--network", "model", "--isolation", "bwrap",
		"--output", "trace.ndjson", "--session-timeout", patience)
	m.check(t, map[string]string{
		"facilitator": "opencode", "security": "claude-code", "tests": "codex", "docs": "gemini",
		"speed": "pi-agent", "critic": "qwen-code",
	}, map[string]string{
		"security": "Safe.", "tests": "Tested.", "docs": "Documented.", "speed": "Quick.", "critic": "Good.",
	})
	for _, name := range []string{"security", "tests", "docs", "speed", "critic"} {
		if got, err := os.ReadFile(filepath.Join(m.dir, "reached-"+name+".txt")); string(got) != "closed\n" {
			t.Errorf("what the machine has for others is %q for %s, %v", got, name, err)
		}
	}
	m.checkOffered(t, "You are the security engineer", usualTools)
	m.checkOffered(t, "You are the tester", codexKnownTools)
	m.checkOffered(t, "You are the engineer of speed", piTools)
	if strings.Contains(m.tail(), "Bearer ") {
		t.Error("a token is in the trace")
	}
}
