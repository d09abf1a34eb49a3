package local

import (
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/claudecode"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// A command of the agent prints an error of the model's service in the name of the agent's program,
// and kills the program. Whether that gets through depends on the machine; the run must not count
// as missing data like any other.
func TestAForgedProviderErrorIsMarked(t *testing.T) {
	forge := `printf '%s\\n' '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":529,\"result\":\"API Error: 529 overloaded_error\",\"num_turns\":1,\"session_id\":\"x\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}' > /proc/$PPID/fd/1; kill -9 $PPID`
	script := `{"turns":[{"calls":[{"bash":"` + forge + `"}]},{"text":"done"}]}`
	tr := preparedOn(t, installed(t, claudecode.New()), oneTask(t, nil), experiment.Setup{
		Arms: []experiment.Arm{{
			Name: "default", Agent: "claude-code", Model: "claude-sonnet-4-5",
			ModelURL: serveScript(t, script),
		}},
	})
	_, _, records := execute(t, tr, 1)
	r := records[0]
	if r.Verdict == ledger.Error && r.Unverified == 0 {
		t.Errorf("the agent has chosen to be missing: %s %s", r.ErrorClass, r.ErrorMessage)
	}
}

// What an agent that was killed had consumed is estimated where no gateway has seen it: one crash
// must not stop an experiment with a budget in dollars.
func TestABudgetSurvivesACrash(t *testing.T) {
	script := `{"turns":[{"calls":[{"bash":"kill -9 $PPID"}]},{"text":"done"}]}`
	tr := preparedOn(t, installed(t, claudecode.New()), oneTask(t, nil), experiment.Setup{
		Runs:    1,
		Gateway: agent.GatewayOff,
		Arms: []experiment.Arm{{
			Name: "default", Agent: "claude-code", Model: "claude-sonnet-4-5",
			ModelURL: serveScript(t, script),
		}},
	})
	path := t.TempDir()
	dir, executor := tr.open(t, path)
	outcome, err := experiment.Run(t.Context(), dir, experiment.Config{
		Executor: executor,
		Budgets:  experiment.Budgets{Experiment: experiment.Budget{USD: 50}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Status != experiment.Complete || outcome.Progress.Unpriced != 0 || outcome.Progress.CostUSD <= 0 {
		t.Errorf("%+v", outcome)
	}
	contents, err := ledger.ReadFile(filepath.Join(path, experiment.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range contents.Records {
		if r.CostSource != session.CostEstimated || r.CostUSD == nil {
			t.Errorf("%s, cost %v (%s)", r.Outcome, r.CostUSD, r.CostSource)
		}
	}
}
