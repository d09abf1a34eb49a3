package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

// Ten tasks of one repository tell little more than one: the limits of the pass rate must say so.
func TestTasksOfOneClusterMakeTheLimitsWider(t *testing.T) {
	var alone, together []ledger.Record
	for i := range 40 {
		verdict := ledger.Fail
		if i/10%2 == 0 {
			verdict = ledger.Pass
		}
		r := run(fmt.Sprintf("task-%02d", i), 0, verdict)
		alone = append(alone, r)
		r.Cluster = fmt.Sprintf("repo-%d", i/10)
		together = append(together, r)
	}
	a, b := build(t, Input{Records: alone, K: []int{1}}).Groups[0], build(t,
		Input{Records: together, K: []int{1}}).Groups[0]
	if a.PassRate.Est != 0.5 || b.PassRate.Est != 0.5 {
		t.Errorf("%v and %v", a.PassRate.Est, b.PassRate.Est)
	}
	if b.PassRate.Hi-b.PassRate.Lo < 2*(a.PassRate.Hi-a.PassRate.Lo) {
		t.Errorf("alone [%.3f, %.3f], in four clusters [%.3f, %.3f]", a.PassRate.Lo, a.PassRate.Hi, b.PassRate.Lo,
			b.PassRate.Hi)
	}
	if !strings.Contains(strings.Join(b.Warnings, "\n"), "4 clusters") || len(a.Warnings) != 0 {
		t.Errorf("%v and %v", a.Warnings, b.Warnings)
	}
}
