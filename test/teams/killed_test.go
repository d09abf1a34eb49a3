package teams

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fit-eval/fit/trace"
)

// interruptedPair is a supervisor with one ask, whose agent runs a command first, unless it learns
// that it has run it.
func interruptedPair(command string) string {
	return `{"scenarios":[
  {"name":"supervisor","when":{"system":"You lead one agent"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Is it ready?"}}]},
    {"text":"Waiting."},
    {"label":"wait","cases":[{"when":{"prompt":"re:answer#1"},"goto":"end"}],"text":"Waiting."},
    {"goto":"wait"},
    {"label":"end","calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It is."}}]},
    {"text":"Over."}]}],
 "turns":[
    {"cases":[{"when":{"any_prompt":"By then you had done this"},"goto":"answer"}],"calls":[{"bash":"` + command + `"}]},
    {"label":"answer","cases":[{"when":{"last_result":"re:."},"calls":[{"mcp":"orchestration/Answer","input":{"message":"It is ready."}}]}],"calls":[{"mcp":"orchestration/Answer","input":{"message":"It is ready."}}]},
    {"text":"Done."}]}`
}

// TestASessionOfVendorsSurvivesAKill kills the program in the middle of an agent's turn. The turn's
// messages are delivered a second time, marked as such, with what the agent had done by then, and
// answered once; what the agent had reported of its consumption is counted.
func TestASessionOfVendorsSurvivesAKill(t *testing.T) {
	// codex tells what a reply took after the commands that it ran
	for worker, tells := range map[string]bool{"claude-code": true, "codex": false, "pi-agent": true} {
		t.Run(worker, func(t *testing.T) {
			t.Parallel()
			m := gather(t, interruptedPair("echo ran >> ran.txt; sleep 86127"), worker)
			m.write(t, "work/README.md", "Nothing here yet.\n")
			victim := exec.CommandContext(t.Context(), os.Args[0])
			victim.Args = []string{
				"fit-harness", "supervise", "--agent", worker, "--agent-model", "gpt-5.5", "--lead-agent", "builtin",
				"--agent-cwd", "work", "--task-text", "Find out.",
				"--output", "trace.ndjson", "--session-timeout", patience,
			}
			victim.Dir, victim.Env = m.dir, m.asProgram(t)
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			m.await(t, "trace.ndjson", "sleep 86127")
			m.await(t, "trace.ndjson", `"type":"conversation","agent":"agent"`)
			m.await(t, "work/ran.txt", "ran")
			if err := victim.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = victim.Wait() // it was killed

			m.model(t, interruptedPair("echo ran >> ran.txt"))
			m.hold(t, "resume", "trace.ndjson")
			m.check(t, map[string]string{"agent": worker}, map[string]string{"agent": "It is ready."})
			if ran, err := os.ReadFile(filepath.Join(m.dir, "work", "ran.txt")); err != nil || string(ran) != "ran\n" {
				t.Errorf("the command ran as %q, %v\n%s", ran, err, m.tail())
			}
			again := map[string]int{}
			var cut int64 // what the turn had consumed that the kill has cut off
			for _, l := range m.trace(t) {
				if l.Type == trace.TypeDelivery && l.Redelivery {
					again[l.To]++
				}
				if l.Type == trace.TypeTurnEnd && l.Outcome == "interrupted" {
					cut += l.Tokens
				}
			}
			if again["agent"] != 1 || again["supervisor"] != 0 {
				t.Errorf("deliveries that were repeated: %v\n%s", again, m.tail())
			}
			if tells && cut < 1000 { // one reply of the scripted model
				t.Errorf("of the turn that was cut off %d tokens are counted\n%s", cut, m.tail())
			}
		})
	}
}

// await waits until a file holds a text.
func (m *meeting) await(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.dir, name)
	for deadline := time.Now().Add(15 * time.Minute); ; {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never held %q\n%s", name, text, m.tail())
		}
		time.Sleep(10 * time.Millisecond) // another process writes it; there is nothing to wait on
	}
}
