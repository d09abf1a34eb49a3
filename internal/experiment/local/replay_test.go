package local

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// TestAnExperimentIsReplayed: with the model gone the verdicts are the same and nothing is paid.
func TestAnExperimentIsReplayed(t *testing.T) {
	family := oneTask(t, nil)
	arms := []experiment.Arm{
		{Name: "good", Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: serveScript(t, solves)},
		{Name: "bad", Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: serveScript(t, `{"turns":[{"text":"No."}]}`)},
	}
	setup := experiment.Setup{Arms: arms}
	recorded, _, before := execute(t, prepared(t, family, setup), 2)
	for _, r := range before {
		named := func(a ledger.Artifact) bool { return a.Path == r.CallsPath && len(a.SHA256) == 64 }
		if r.CallsPath == "" || !slices.ContainsFunc(r.Artifacts, named) || r.CostSource != session.CostWire ||
			r.CostUSD == nil || *r.CostUSD == 0 || r.OriginalCostUSD != nil {
			t.Errorf("%s: record %q, artefacts %v, cost %v (%s)", r.Arm, r.CallsPath, r.Artifacts, r.CostUSD, r.CostSource)
		}
	}

	setup.Arms = slices.Clone(arms)
	for i := range setup.Arms {
		setup.Arms[i].ModelURL = "" // no model, and no key in the environment
	}
	setup.Replay = recorded
	_, _, after := execute(t, prepared(t, family, setup), 2)
	if len(after) != len(before) {
		t.Fatalf("%d attempts instead of %d", len(after), len(before))
	}
	for _, was := range before {
		at := slices.IndexFunc(after, func(r ledger.Record) bool { return r.Key() == was.Key() })
		is := after[at]
		if is.Verdict != was.Verdict || is.Turns != was.Turns || is.Submission != was.Submission ||
			is.Digests.Final != was.Digests.Final {
			t.Errorf("%s was %s, %q and is %s, %q (%s)", was.Arm, was.Verdict, was.Submission, is.Verdict,
				is.Submission, is.ErrorMessage)
		}
		if is.CostUSD == nil || *is.CostUSD != 0 || is.OriginalCostUSD == nil || *is.OriginalCostUSD != *was.CostUSD ||
			is.Replay != recorded {
			t.Errorf("%s cost %v, originally %v", is.Arm, is.CostUSD, is.OriginalCostUSD)
		}
	}
}

func TestAReplayWithoutARecordIsRefused(t *testing.T) {
	family := oneTask(t, nil)
	setup := experiment.Setup{
		Policy: gateway.Policy{Record: calls.RecordOff},
		Arms:   []experiment.Arm{{Name: "a", Agent: "builtin", Model: "m", ModelURL: serveScript(t, solves)}},
	}
	recorded, _, records := execute(t, prepared(t, family, setup), 1)
	if records[0].CallsPath != "" {
		t.Errorf("--record off left %s", records[0].CallsPath)
	}
	for _, dir := range []string{recorded, t.TempDir()} {
		setup.Replay = dir
		tr := prepared(t, family, setup)
		_, err := New(t.Context(), Config{
			Prepared: tr.Prepared, Machine: tr.machine,
			Work: filepath.Join(t.TempDir(), "work"),
		})
		if err == nil || !strings.Contains(err.Error(), "replay: ") {
			t.Errorf("%v", err)
		}
	}
}
