package agents

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway"
	"github.com/fit-eval/fit/session"
)

// newFaultyRig is a rig whose calls go wrong as a plan says, and whose agent tries nothing again
// that it can be told not to.
func newFaultyRig(t *testing.T, a agent.Agent, plan string) *rig {
	t.Helper()
	r := newRig(t, a, scriptOf(t, turn{"calls": []turn{call("bash", "echo done > done")}}, turn{"text": "Done."}))
	path := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.faults, err = gateway.LoadFaults(path); err != nil {
		t.Fatal(err)
	}
	r.config.Retries = new(int)
	return r
}

// TestModelTroubleThatStays: every call meets a fault on purpose. An agent that does not get over
// it has met a failure of the service, and its session says which.
func TestModelTroubleThatStays(t *testing.T) {
	t.Parallel()
	// Some agents only say that something went wrong.
	broken := []session.ErrorKind{session.ErrorOverloaded, session.ErrorAPI, session.ErrorOther}
	for name, test := range map[string]struct {
		rule  string
		kinds []session.ErrorKind
		// survivable: an agent may leave out an event that it cannot read.
		survivable bool
	}{
		"429":            {"kind: rate-limit", []session.ErrorKind{session.ErrorRateLimit}, false},
		"500":            {"kind: server-error", broken, false},
		"529":            {"kind: server-error, status: 529", broken, false},
		"cut stream":     {"kind: cut-stream", broken, false},
		"truncated JSON": {"kind: truncated-json", broken, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachAgent(t, func(t *testing.T, a agent.Agent) {
				r := newFaultyRig(t, a, "faults: [{"+test.rule+", chance: 1}]\n")
				result, s := r.run("Do it")
				if len(r.met) != 1 {
					t.Errorf("met %v", r.met)
				}
				if test.survivable && result.Success && result.Text == "Done." && r.file("done") != "" {
					return
				}
				if result.Success || result.Outcome != session.OutcomeProvider || result.Err == nil {
					t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
				}
				if s.Outcome != session.OutcomeProvider {
					t.Errorf("session's outcome: %q", s.Outcome)
				}
				said := func(kind session.ErrorKind) bool { return len(errorsOf(s, kind)) > 0 }
				if !slices.ContainsFunc(test.kinds, said) {
					t.Errorf("no error of kind %v in the session", test.kinds)
				}
				if _, reached := milestones(s)[session.TaskCompletion]; reached {
					t.Error("the task is said to be completed")
				}
			})
		})
	}
}

// TestTroubleThatIsNone: an answer that comes late is an answer, and one that says ten times what
// it used costs what it really used.
func TestTroubleThatIsNone(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		r := newFaultyRig(t, a, `seed: 3
faults:
  - {kind: slow-tokens, chance: 0.5, delayMs: 5}
  - {kind: wrong-usage, chance: 1}
`)
		result, s := r.run("Do it")
		if !result.Success || result.Text != "Done." || s.Outcome != session.OutcomeSuccess {
			t.Errorf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
		}
		if len(r.met) != 2 {
			t.Errorf("met %v", r.met)
		}
		if u := result.Usage; u.InputTokens != 2000 || u.OutputTokens != 200 {
			t.Errorf("usage %+v", u)
		}
	})
}
