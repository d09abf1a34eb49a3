package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/ledger"
)

// A task that is edited while an experiment runs must not be measured as if it were the planned
// one.
func TestATaskThatChangesDuringTheRunIsAnError(t *testing.T) {
	family := answerFamily(t, 1)
	tr := prepared(
		t,
		family,
		experiment.Setup{Arms: []experiment.Arm{{
			Name: "a", Agent: "builtin", Model: "claude-sonnet-4-5",
			ModelURL: serveScript(t, solves),
		}}},
	)
	_, executor := tr.open(t, t.TempDir())
	cell := tr.Plan.Cells()[0]
	record, err := executor.Execute(t.Context(), cell, 1)
	if err != nil || record.Verdict != ledger.Pass {
		t.Fatalf("%+v %v", record, err)
	}
	hook := filepath.Join(family.Tasks[0].Dir, "hooks", "invariants.sh")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho '{\"test\":\"x\",\"pass\":true}' >&3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	record, err = executor.Execute(t.Context(), cell, 2)
	if err != nil || record.Verdict != ledger.Error || record.ErrorClass != ledger.ErrorSetup ||
		!strings.Contains(record.ErrorMessage, "changed since the experiment began") {
		t.Errorf("%s %s %s %v", record.Verdict, record.ErrorClass, record.ErrorMessage, err)
	}
}
