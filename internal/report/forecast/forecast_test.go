package forecast

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
)

// A pilot with copies has fewer units than tasks, and a forecast from it says so.
func TestAPilotNamesItsCopies(t *testing.T) {
	var records []ledger.Record
	for i := range 12 {
		for _, arm := range []string{"a", "b"} {
			verdict := ledger.Pass
			if arm == "a" && i%3 > 0 {
				verdict = ledger.Fail
			}
			cluster := ""
			if i < 2 {
				cluster = "copies"
			}
			records = append(records, ledger.Record{
				Cluster: cluster,
				TaskID:  fmt.Sprintf("t%02d", i),
				Arm:     arm,
				Attempt: 1,
				Final:   true,
				Verdict: verdict,
			})
		}
	}
	built, err := report.Build(report.Input{Records: records, K: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	built.Groups[0].Scope = "3 tasks have the same files and tests as task t00, and each counts as independent evidence"
	built.Groups[1].Scope = built.Groups[0].Scope
	p := &Forecast{Effect: .1}
	if err := p.UsePilot(&built.Groups[0], &built.Groups[1]); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"the pilot: 3 tasks have the same files and tests as task t00, and each counts as independent evidence",
		"the pilot: 12 tasks in 11 clusters, such as copies, each of which counts as one",
	} {
		if !slices.Contains(p.Warnings, want) || len(p.Warnings) != 3 {
			t.Errorf("%q", p.Warnings)
		}
	}
}
