package teams

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
)

// TestTheFiguresAgree: what is printed at the end and what the trace's summary says, which is what
// a program gets as the result, are the same turns and the same cost, of a run and of a team. A
// turn is one of a model, whoever it belongs to, and a cost that is not known is not shown as one.
func TestTheFiguresAgree(t *testing.T) {
	const priced, unpriced = "gpt-5.1-codex", "scripted-model"
	run := []string{"run", "--cwd", "work"}
	team := []string{"supervise", "--lead-agent", "builtin", "--agent-cwd", "work"}
	for _, worker := range []string{"builtin", "codex"} {
		for name, test := range map[string]struct {
			args  []string
			model string
			turns int
		}{
			"run":                   {run, priced, 3},
			"team":                  {team, priced, 8},
			"team at unknown price": {team, unpriced, 8},
		} {
			t.Run(worker+" "+name, func(t *testing.T) {
				t.Parallel()
				m := gather(t, `{"scenarios":[
  {"name":"supervisor","when":{"system":"You lead one agent"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Is it ready?"}}]},
    {"text":"Waiting."},
    {"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It is."}}]},
    {"text":"Over."}]}],
 "turns":[{"calls":[{"bash":"echo one"}]},{"calls":[{"bash":"echo two"}]},{"text":"Done."}]}`, worker)
				m.write(t, "work/README.md", "Nothing here yet.\n")
				args := append([]string{"fit-harness"}, test.args...)
				args = append(args, "--agent", worker, "--agent-model", test.model, "--task-text", "Find out.",
					"--output", "trace.ndjson")
				if code := cli.Run(t.Context(), args, m.con); code != 0 {
					t.Fatalf("exit code %d\n%s\n%s", code, m.err.String(), m.tail())
				}
				lines := m.trace(t)
				last := lines[len(lines)-1]
				if last.Turns != test.turns || (last.CostUSD == nil) != (test.model == unpriced) {
					t.Errorf("%d turns, want %d; cost %v", last.Turns, test.turns, last.CostUSD)
				}
				cost := "unknown"
				if last.CostUSD != nil {
					cost = fmt.Sprintf("$%.4f", *last.CostUSD)
				}
				printed := fmt.Sprintf("| Turns: %d | Cost: %s |", last.Turns, cost)
				if !strings.Contains(m.out.String(), printed) {
					t.Errorf("want %q in %s", printed, m.out.String())
				}
			})
		}
	}
}
