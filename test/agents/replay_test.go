package agents

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	modelcalls "github.com/fit-eval/fit/internal/gateway/calls"
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
	again.keep(gateway.RecordConfig{Policy: gateway.Policy{Replay: path}})
	second, s := again.run(fixIt)
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

// checkReplayModes runs the same agent with a model that says something else: a strict replay ends
// at the first request that differs in what the model reads, and answers the same work in another
// directory; a live one does not ask the model for what is recorded.
func checkReplayModes(t *testing.T, r *rig, path string, first agent.Result) {
	t.Helper()
	const elsewhere = "The model was asked."
	for _, test := range []struct {
		mode, prompt string
		text         string // of the agent; empty: it fails
		outcome      string // of every call that carries the conversation
	}{
		{gateway.ReplayStrict, "Something else", "", modelcalls.Failed},
		{gateway.ReplayStrict, fixIt, first.Text, modelcalls.Replayed},
		{gateway.ReplayLive, fixIt, first.Text, modelcalls.Replayed},
	} {
		again := newRig(t, r.agent, scriptOf(t, turn{"text": elsewhere}))
		again.keep(gateway.RecordConfig{Policy: gateway.Policy{Replay: path, ReplayMode: test.mode}})
		again.config.Retries = new(int) // the answer would be the same
		result, _ := again.run(test.prompt)
		if result.Success != (test.text != "") || test.text != "" && result.Text != test.text {
			t.Errorf("%s, %q: outcome %q, text %q, error %v", test.mode, test.prompt, result.Outcome, result.Text,
				result.Err)
		}
		for _, c := range again.ended {
			if c.Tools > 0 && c.Outcome != test.outcome {
				t.Errorf("%s, %q: call %d: %s %s", test.mode, test.prompt, c.Seq, c.Outcome, c.Error)
			}
			if c.Outcome == modelcalls.Failed && !strings.Contains(c.Error, " differs from recorded call ") {
				t.Errorf("%s: the difference is not shown: %s", test.mode, c.Error)
			}
		}
		if len(again.ended) == 0 {
			t.Errorf("%s: there was no call", test.mode)
		}
	}
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
