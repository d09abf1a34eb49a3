package experiment

import (
	"fmt"
	"strings"
	"testing"
)

// TestTasksAreUnitsOfEvidence: copies of a task are one unit, tasks of several repositories are as
// many units as there are repositories, and tasks of one repository are units of their own. What
// makes a claim impossible is said.
func TestTasksAreUnitsOfEvidence(t *testing.T) {
	t.Parallel()
	repositories := func(n int) func(int, *PlannedTask) {
		return func(i int, t *PlannedTask) { t.Repository = fmt.Sprint("/r", i%n) }
	}
	for name, test := range map[string]struct {
		change func(i int, task *PlannedTask)
		units  int
		says   string // the beginning of what is said
	}{
		"different tasks":       {func(int, *PlannedTask) {}, 12, ""},
		"one repository":        {repositories(1), 12, ""},
		"several repositories":  {repositories(7), 7, "independent units"},
		"too few repositories":  {repositories(2), 2, "independent units"},
		"clusters of their own": {func(i int, t *PlannedTask) { t.Cluster = fmt.Sprint("c", i%6) }, 6, "independent"},
		"copies":                {func(_ int, t *PlannedTask) { t.Visible = "same" }, 1, "copies of task task-000: 11"},
		"two copies": {func(i int, t *PlannedTask) {
			if i < 2 {
				t.Visible = "same"
			}
		}, 11, "copies of task task-000: 1;"},
		"near copies": {func(i int, t *PlannedTask) {
			t.Shared = fmt.Sprint("s", i/2)
		}, 12, "1 task has the same files and tests as task task-000, and each counts"},
		"three near copies": {func(i int, t *PlannedTask) {
			if i < 3 {
				t.Shared = "same"
			}
		}, 12, "2 tasks have the same files and tests as task task-000, and each counts as independent evidence: put"},
		"near copies that are named": {func(_ int, t *PlannedTask) {
			t.Shared, t.Cluster = "same", "c"
		}, 1, "independent"},
		"copies in one cluster": {func(_ int, t *PlannedTask) {
			t.Visible, t.Cluster = "same", "c"
		}, 1, "copies of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := planOf(t, 12, 1, "a", "b")
			for i := range plan.Tasks {
				test.change(i, &plan.Tasks[i])
			}
			if err := plan.Seal(); err != nil {
				t.Fatal(err)
			}
			notes := plan.Limits()
			if plan.Units() != test.units || (len(notes) > 0) != (test.says != "") ||
				len(notes) > 0 && !strings.HasPrefix(notes[0], test.says) {
				t.Errorf("%d units, want %d: %q", plan.Units(), test.units, notes)
			}
			near := strings.Contains(test.says, "same files")
			if near != strings.Contains(plan.Scope(), "the same files and tests as task task-000") {
				t.Errorf("the first line says %q", plan.Scope())
			}
			impossible := strings.Contains(strings.Join(notes, "\n"), "a claim needs")
			if impossible != (test.units < 6) {
				t.Errorf("%d units: %q", test.units, notes)
			}
		})
	}
}
