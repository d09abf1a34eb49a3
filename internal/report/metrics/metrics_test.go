package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
)

func run(task string, index int, verdict string) ledger.Record {
	cost := 0.25
	return ledger.Record{
		TaskID:   task,
		RunIndex: index,
		Attempt:  1,
		Verdict:  verdict,
		Final:    true,
		CostUSD:  &cost,
		Grade: &ledger.Grade{
			Verdict:   verdict,
			GatesPass: true,
			Healthy:   true,
		},
	}
}

func build(t *testing.T, records ...ledger.Record) *report.Report {
	t.Helper()
	r, err := report.Build(report.Input{Records: records, K: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMetricsAreAppendedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.ndjson")
	// without the end of the line
	if err := os.WriteFile(path, []byte(`{"experiment":"of long ago"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first := build(t, run("a", 0, ledger.Pass), run("b", 0, ledger.Fail))
	for range 2 {
		if err := Append(path, first); err != nil {
			t.Fatal(err)
		}
	}
	more := build(t, run("a", 0, ledger.Pass), run("b", 0, ledger.Fail), run("c", 0, ledger.Pass))
	if err := Append(path, more); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), content)
	}
	var last row
	if err := json.Unmarshal([]byte(lines[2]), &last); err != nil || last.Tasks != 3 || last.Runs != 3 ||
		last.PassRate == nil || *last.PassRate < 0.66 || last.CostPerPass == nil || *last.CostPerPass != 0.375 {
		t.Errorf("%v: %s", err, lines[2])
	}
}

func TestMetricsAreOneRowPerArm(t *testing.T) {
	late, early := run("a", 0, ledger.Pass), run("a", 1, ledger.Fail)
	late.StartMs, early.StartMs = 2000, 1000
	rows := rowsOf(build(t, late, early))
	if len(rows) != 1 || rows[0].StartMs != 1000 || *rows[0].PassRate != .5 || *rows[0].CostUSD != .5 ||
		rows[0].Runs != 2 {
		t.Errorf("%+v", rows)
	}
}
