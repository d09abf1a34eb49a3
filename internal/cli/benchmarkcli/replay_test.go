package benchmarkcli

import (
	"encoding/json"
	"strings"
	"testing"
)

// replayedCell is what a replay must repeat of a cell, and what it costs.
type replayedCell struct {
	TaskID          string
	RunIndex        int
	Verdict         string
	Turns           int
	CostUSD         float64
	OriginalCostUSD float64
}

// cells reads the records that a run has printed, in some order.
func cells(t *testing.T, printed string) map[[2]any]replayedCell {
	t.Helper()
	found := map[[2]any]replayedCell{}
	for line := range strings.Lines(printed) {
		var cell replayedCell
		if err := json.Unmarshal([]byte(line), &cell); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		found[[2]any{cell.TaskID, cell.RunIndex}] = cell
	}
	return found
}

// TestAWholeExperimentIsReplayed: without a model and without a key the verdicts are the same, and
// it costs nothing.
func TestAWholeExperimentIsReplayed(t *testing.T) {
	c, run := tiny(t, 3)
	c.want(0, with(run, "--runs", "2", "--format", "json")...)
	recorded := cells(t, c.stdout)
	c.want(0, "run", "--family", "family", "--agent", "builtin", "--model", "claude-sonnet-4-5",
		"--runs", "2", "--format", "json", "--replay", "out", "--output", "again")
	replayed := cells(t, c.stdout)
	if len(recorded) != 6 || len(replayed) != 6 {
		t.Fatalf("%d cells were recorded, %d replayed", len(recorded), len(replayed))
	}
	passed := 0
	for key, was := range recorded {
		if was.Verdict == "pass" {
			passed++
		}
		now := replayed[key]
		if now.Verdict != was.Verdict || now.Turns != was.Turns || was.CostUSD == 0 || now.CostUSD != 0 ||
			now.OriginalCostUSD != was.CostUSD {
			t.Errorf("recorded %+v, replayed %+v", was, now)
		}
	}
	if passed == 0 || passed == len(recorded) {
		t.Errorf("%d of %d cells passed: equal verdicts prove nothing", passed, len(recorded))
	}
}
