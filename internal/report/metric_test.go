package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

func TestMetricsAreAppendedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.ndjson")
	// without the end of the line
	if err := os.WriteFile(path, []byte(`{"experiment":"of long ago"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first := build(t, Input{Records: []ledger.Record{run("a", 0, ledger.Pass), run("b", 0, ledger.Fail)}, K: []int{1}})
	for range 2 {
		if err := first.AppendMetrics(path); err != nil {
			t.Fatal(err)
		}
	}
	more := build(t, Input{Records: []ledger.Record{
		run("a", 0, ledger.Pass), run("b", 0, ledger.Fail),
		run("c", 0, ledger.Pass),
	}, K: []int{1}})
	if err := more.AppendMetrics(path); err != nil {
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
	var last metric
	if err := json.Unmarshal([]byte(lines[2]), &last); err != nil || last.Tasks != 3 || last.Runs != 3 ||
		last.PassRate == nil || *last.PassRate < 0.66 || last.CostPerPass == nil || *last.CostPerPass != 0.375 {
		t.Errorf("%v: %s", err, lines[2])
	}
}
