package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

// plan lets the calls of a rig go wrong as a plan says.
func (r *rig) plan(text string) {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if r.faults, err = gateway.LoadFaults(path); err != nil {
		r.t.Fatal(err)
	}
}

// Some agents only say that something went wrong.
var broken = []session.ErrorKind{session.ErrorOverloaded, session.ErrorAPI, session.ErrorOther}

// TestModelTroubleThatStays: an agent that does not get over it has met a failure of the service,
// and its session says which. One process meets all of it.
func TestModelTroubleThatStays(t *testing.T) {
	limited, refused := []session.ErrorKind{session.ErrorRateLimit}, []session.ErrorKind{session.ErrorAuth}
	troubles := []struct {
		name    string
		fault   turn
		outcome session.Outcome
		kinds   []session.ErrorKind
	}{
		{"429", turn{"status": 429, "message": trouble[429]}, session.OutcomeProvider, limited},
		{"500", turn{"status": 500, "message": trouble[500]}, session.OutcomeProvider, broken},
		{"529", turn{"status": 529, "message": trouble[529]}, session.OutcomeProvider, broken},
		{"cut stream", turn{"stream": "cut"}, session.OutcomeProvider, broken},
		{"bad key", turn{"status": 401, "message": "invalid API key"}, session.OutcomeAuth, refused},
	}
	var scenarios []turn
	for _, trouble := range slices.Backward(troubles) { // some agents repeat the prompts that were not answered
		scenarios = append(scenarios, turn{
			"name": trouble.name, "when": turn{"prompt": "Meet " + trouble.name},
			"turns": []turn{{"text": "All of it.", "fault": trouble.fault}},
		})
	}
	script, err := json.Marshal(turn{"scenarios": scenarios, "turns": []turn{{"text": "Never said."}}})
	if err != nil {
		t.Fatal(err)
	}
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, string(script))
		r.config.OneShot, r.config.Retries = false, new(int)
		talk, before := r.start(), 0
		for _, trouble := range troubles {
			result := r.prompt(t.Context(), talk, "Meet "+trouble.name)
			if result.Success || result.Outcome != trouble.outcome || result.Err == nil {
				t.Errorf("%s: success %v, outcome %q, error %v", trouble.name, result.Success, result.Outcome,
					result.Err)
			}
			s := r.session()
			before = checkTrouble(t, s, before, trouble.name, trouble.outcome, trouble.kinds)
		}
	})
}

// checkTrouble looks at what a session says about the trouble that it has met since some event, and
// returns how many events it has.
func checkTrouble(t *testing.T, s *session.EnrichedSession, before int, name string, outcome session.Outcome,
	kinds []session.ErrorKind,
) int {
	t.Helper()
	said := func(event session.EnrichedEvent) bool {
		return event.Error != nil && slices.Contains(kinds, event.Error.Kind)
	}
	if s.Outcome != outcome || !slices.ContainsFunc(s.Events[before:], said) {
		t.Errorf("%s: the session's outcome is %q, and it has an error of kind %v: %v", name, s.Outcome, kinds,
			slices.ContainsFunc(s.Events[before:], said))
	}
	if _, reached := milestones(s)[session.TaskCompletion]; reached {
		t.Errorf("%s: the task is said to be completed", name)
	}
	return len(s.Events)
}

// TestFaultsOnPurpose: every call meets a fault of the gateway's. What the model may do as well is
// met by the quick ones only; "make soak" lets everybody meet everything.
func TestFaultsOnPurpose(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule  string
		kinds []session.ErrorKind
		by    func(agent.Info) bool
	}{
		"429":            {"kind: rate-limit", []session.ErrorKind{session.ErrorRateLimit}, quick},
		"500":            {"kind: server-error", broken, quick},
		"529":            {"kind: server-error, status: 529", broken, quick},
		"cut stream":     {"kind: cut-stream", broken, quick},
		"truncated JSON": {"kind: truncated-json", broken, oneOfEach},
	} {
		t.Run(name, func(t *testing.T) {
			eachAgentThat(t, test.by, func(t *testing.T, a agent.Agent) {
				r := newRig(t, a, scriptOf(t, agenttest.Bash("echo done > done"), agenttest.Says("Done.")))
				r.plan("faults: [{" + test.rule + ", chance: 1}]\n")
				r.config.Retries = new(int)
				result, s := r.run("Do it")
				if len(r.met) != 1 {
					t.Errorf("met %v", r.met)
				}
				// An agent may leave out an event that it cannot read.
				if name == "truncated JSON" && result.Success && result.Text == "Done." && r.file("done") != "" {
					return
				}
				if result.Success || result.Outcome != session.OutcomeProvider || result.Err == nil {
					t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
				}
				checkTrouble(t, s, 0, name, session.OutcomeProvider, test.kinds)
			})
		})
	}
}
