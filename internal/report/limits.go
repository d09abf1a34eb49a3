package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// atLimit returns the limit that ended the agent of a run; empty where it ended by itself.
func atLimit(r *ledger.Record) string {
	switch session.Outcome(r.Outcome) {
	case session.OutcomeMaxTurns, session.OutcomeTimeout, session.OutcomeBudget, session.OutcomeOutput:
		return r.Outcome
	default:
		return ""
	}
}

// limited counts the runs with a verdict whose agent a limit ended, by limit; nil is none.
func limited(records []ledger.Record) map[string]int {
	var found map[string]int
	for i := range records {
		r := &records[i]
		limit := atLimit(r)
		if limit == "" || r.Verdict == ledger.Error {
			continue
		}
		if found == nil {
			found = map[string]int{}
		}
		found[limit]++
	}
	return found
}

// limitsText says how many runs ended at a limit; empty where none did.
func limitsText(limits map[string]int) string {
	n, parts := byCount(limits)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s ended at a limit: %s", Count(n, "run"), parts)
}

// censoredText warns that a ratio does not know what some runs would have taken; empty where it
// does.
func censoredText(runs int) string {
	if runs == 0 {
		return ""
	}
	return fmt.Sprintf(" (censored: %s ended at a limit and would have taken more, so the true ratio may differ)",
		Count(runs, "run"))
}

// warnOfLimits names the limits of two experiments where they differ: those of the arms, and those
// of tasks that both have.
func warnOfLimits(a, b *Group) []string {
	if a.limits == "" || b.limits == "" || a.Provenance.Experiment == b.Provenance.Experiment {
		return nil
	}
	var warnings []string
	if a.limits != b.limits {
		warnings = append(warnings, fmt.Sprintf("the two had different limits: %s and %s", a.limits, b.limits))
	}
	var differ []string
	for i := range a.Tasks {
		id := a.Tasks[i].TaskID
		there := slices.ContainsFunc(b.Tasks, func(t Task) bool { return t.TaskID == id })
		if one, other := cmp.Or(a.ofTasks[id], "none"), cmp.Or(b.ofTasks[id], "none"); there && one != other {
			differ = append(differ, fmt.Sprintf("%s %s and %s", id, one, other))
		}
	}
	if n := len(differ); n > 0 {
		warnings = append(warnings, fmt.Sprintf("%s had different limits in the two: %s", Count(n, "task"),
			strings.Join(differ[:min(n, maxShownLimits)], ", ")))
	}
	return warnings
}

// maxShownLimits bounds the tasks whose limits are named.
const maxShownLimits = 5
