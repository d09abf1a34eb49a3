package agents

import (
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway"
	modelcalls "github.com/fit-eval/fit/gateway/calls"
	"github.com/fit-eval/fit/session"
)

// keep records the calls of the agent, or answers them.
func (r *rig) keep(cfg gateway.RecordConfig) *gateway.Record {
	r.t.Helper()
	kept, err := gateway.OpenRecord(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = kept.Close() })
	r.kept = kept
	return kept
}

// checkReplay runs the same agent in another directory, without a model.
func checkReplay(t *testing.T, r *rig, path string, first agent.Result) {
	t.Helper()
	again := newRig(t, r.agent, `{"turns":[{"text":"This model must not be asked."}]}`)
	again.config.ModelURL = gateway.NoEndpoint
	again.keep(gateway.RecordConfig{Replay: path})
	second, s := again.run("Fix Add so that the tests pass")
	if !second.Success || second.Text != first.Text || again.file("calc.go") != r.file("calc.go") {
		t.Errorf("recorded: %q %v; replayed: %q %v, calc.go:\n%s", first.Text, first.Err, second.Text, second.Err,
			again.file("calc.go"))
	}
	if second.Turns != first.Turns || second.Usage.TotalTokens != first.Usage.TotalTokens ||
		second.Usage.CostUSD == nil || *second.Usage.CostUSD != 0 {
		t.Errorf("recorded: %d turns, %+v; replayed: %d turns, %+v", first.Turns, first.Usage, second.Turns,
			second.Usage)
	}
	checkHappySession(t, s)
}

// checkRecord reads the record of a run: its prompts are there, and nothing is damaged.
func checkRecord(t *testing.T, path, participant string) {
	t.Helper()
	record, err := modelcalls.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	prompts, err := session.WirePrompts(record, participant)
	if err != nil || len(prompts) < 2 || len(record.Problems()) > 0 {
		t.Errorf("%d prompts, %v, %v", len(prompts), err, record.Problems())
	}
}
