package local

import (
	"testing"

	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/command"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// What an agent has consumed that works and tells no count is unknown. One that shows no work at
// all has not been measured.
func TestWhatIsNotToldIsUnknown(t *testing.T) {
	for script, want := range map[string]string{
		`echo '{"type":"text","text":"Done."}'`: ledger.Fail,
		`true`:                                  ledger.Error,
	} {
		mine := command.New(command.Entry{ID: "mine", Command: agenttest.Script(t, script), Events: "ndjson"})
		tr := preparedOn(t, installed(t, mine), oneTask(t, nil), experiment.Setup{
			Arms: []experiment.Arm{{Name: "default", Agent: "mine"}},
		})
		_, _, records := execute(t, tr, 1)
		r := records[0]
		if r.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", script, r.Verdict, want, r.ErrorMessage)
		}
		if want == ledger.Fail && (r.CostUSD != nil || r.CostSource == session.CostReported) {
			t.Errorf("%s: cost %v (%s)", script, r.CostUSD, r.CostSource)
		}
	}
}
