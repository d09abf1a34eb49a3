package versus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/session"
)

// A person clears a flag: it stays in the report, with who and why, and disqualifies nobody. What
// is not there cannot be cleared, and a review of another record counts for nothing.
func TestAPersonClearsAFlag(t *testing.T) {
	t.Parallel()
	dir := written(t, three())
	reviewed := func() (versus.Cell, *versus.EvalReport) {
		built := build(t, dir, options())
		for _, cell := range built.Cells {
			if cell.Arm == "codex" {
				return cell, built
			}
		}
		t.Fatal("no such cell")
		return versus.Cell{}, nil
	}
	before, report := reviewed()
	if before.Status != evidence.StatusDisqualified {
		t.Fatalf("before: %+v", before)
	}
	source, err := versus.Open(t.Context(), dir, options())
	if err != nil {
		t.Fatal(err)
	}
	ann := session.Clearance{By: "Ann", Reason: "the test was a duplicate", AtMs: report.CreatedMs + 1}
	for _, wrong := range [][2]string{{"codex", "history_mining"}, {"nobody", evidence.FlagTestDeleted}} {
		if err := source.Clear(t.Context(), before.Task, wrong[0], 0, wrong[1], ann); err == nil {
			t.Errorf("%v was cleared", wrong)
		}
	}
	if err := source.Clear(t.Context(), before.Task, "codex", 0, evidence.FlagTestDeleted, ann); err != nil {
		t.Fatal(err)
	}
	after, report := reviewed()
	if flag := after.Integrity[0]; after.Status == evidence.StatusDisqualified || flag.Cleared == nil ||
		*flag.Cleared != ann || report.CreatedMs != ann.AtMs ||
		!strings.Contains(strings.Join(report.Warnings, "\n"), "cleared by a person") {
		t.Errorf("after: %s, %+v, %v", after.Status, flag, report.Warnings)
	}
	path := filepath.Join(dir, "reviews.jsonl")
	line, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(line), `"record":"`, `"record":"0`, 1)
	if err := os.WriteFile(path, []byte(other+`{"torn`), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, _ := reviewed(); again.Status != evidence.StatusDisqualified {
		t.Errorf("a review of another record: %s", again.Status)
	}
}
