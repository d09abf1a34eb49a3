package local

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
)

// Nothing keeps an agent without isolation from the hook that is to grade it. The cell in which it
// overwrites one has no verdict, and neither has any that comes after it.
func TestAHookThatTheAgentOverwritesIsNoticed(t *testing.T) {
	family := answerFamily(t, 1)
	hook := filepath.Join(family.Tasks[0].Dir, "hooks", "invariants.sh")
	tr := prepared(
		t,
		family,
		experiment.Setup{Isolation: sandbox.IsolationNone, Arms: []experiment.Arm{{
			Name: "a", Agent: "builtin", Model: "claude-sonnet-4-5",
			ModelURL: serveScript(t, `{"turns":[{"calls":[{"bash":"sed -i s/pass=false/pass=true/ `+hook+`"}]},{"text":"Done."}]}`),
		}}},
	)
	_, executor := tr.open(t, t.TempDir())
	for attempt, agent := range []bool{true, false} {
		record, err := executor.Execute(t.Context(), tr.Plan.Cells()[0], attempt+1)
		if err != nil || record.Verdict != ledger.Error || record.ErrorClass != ledger.ErrorSetup ||
			!strings.Contains(record.ErrorMessage, "changed since the experiment began") {
			t.Errorf("%s %s %s %v", record.Verdict, record.ErrorClass, record.ErrorMessage, err)
		}
		if (record.AgentTracePath != "") != agent {
			t.Errorf("attempt %d: the agent ran: %v", attempt+1, !agent)
		}
	}
}
