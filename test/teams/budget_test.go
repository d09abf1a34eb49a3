package teams

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
)

// busyAgent is an agent that would go on for forty replies, of which the scripted model counts a
// thousand tokens each.
func busyAgent() string {
	return `{"scenarios":[
  {"name":"supervisor","when":{"system":"You lead one agent"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Is it ready?"}}]},
    {"text":"Waiting."},
    {"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"failure","summary":"Nobody knows."}}]},
    {"text":"Over."}]}],
 "turns":[` + strings.Repeat(`{"calls":[{"bash":"echo step"}],"delay_ms":100},`, 40) + `{"text":"Done."}]}`
}

// TestABudgetEndsTheTurnThatUsesItUp gives a single long turn a budget, of the session or of the
// participant. Nobody waits for the turn to end by itself, and no call is made that does not fit.
func TestABudgetEndsTheTurnThatUsesItUp(t *testing.T) {
	const ofSession, ofParticipant = "--session-max-tokens", "--participant-max-tokens"
	// which budget it is makes no difference to an agent, and who uses it up none to a budget
	workers := map[string][]string{"builtin": {ofSession, ofParticipant}, "codex": {ofSession}}
	if soaking() {
		workers["claude-code"], workers["pi-agent"] = []string{ofParticipant}, []string{ofSession}
	}
	for worker, flags := range workers {
		for _, flag := range flags {
			t.Run(worker+" "+flag, func(t *testing.T) {
				t.Parallel()
				m := gather(t, busyAgent(), worker)
				m.write(t, "work/README.md", "Nothing here yet.\n")
				code := cli.Run(t.Context(), []string{
					"fit-harness", "supervise", "--agent", worker, "--agent-model", "gpt-5.5", "--lead-agent",
					"builtin", "--agent-cwd", "work", "--task-text", "Find out.",
					"--output", "trace.ndjson", "--session-timeout", patience, flag, "8000",
				}, m.con)
				if want := map[string]int{ofSession: 4, ofParticipant: 1}[flag]; code != want {
					t.Errorf("exit code %d, want %d\n%s\n%s", code, want, m.err.String(), m.tail())
				}
				lines := m.trace(t)
				last := lines[len(lines)-1]
				tokens := last.Tokens
				if flag == ofParticipant {
					tokens = last.Participants[1].Tokens
				}
				if tokens < 1000 || tokens > 8000 {
					t.Errorf("%d tokens were consumed, by %+v\n%s", tokens, last.Participants, m.tail())
				}
			})
		}
	}
}
