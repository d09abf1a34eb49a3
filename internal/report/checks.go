package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
)

// CheckRate is how often a check passed over the runs of a task: the check's row of the pass
// matrix.
type CheckRate struct {
	Check  string `json:"check"`
	Source string `json:"source"`
	Passed int    `json:"passed"`
	N      int    `json:"n"`
	Gate   bool   `json:"gate,omitempty"`
	// Runs is the matrix: one letter per run in order, P passed, F failed, - not reported.
	Runs string `json:"runs"`
	// Mixed says that the check passed in some runs and not in others: because of the agent, or
	// because the check is not deterministic (see lint).
	Mixed bool `json:"mixed,omitempty"`
}

// failedCheck is a check that runs of a task failed.
type failedCheck struct {
	task, check, message string
	runs, of             int
}

// maxFailures bounds the list of failed checks of an arm.
const maxFailures = 12

// failures lists what runs failed, the most frequent first.
func (g *Group) failures() []failedCheck {
	var all []failedCheck
	graded := map[string]int{}
	for i := range g.records {
		r := &g.records[i]
		if r.Verdict == ledger.Error {
			continue
		}
		graded[r.TaskID]++
		if r.Verdict != ledger.Fail {
			continue
		}
		for _, row := range failure.Checks(r) {
			at := slices.IndexFunc(all, func(f failedCheck) bool { return f.task == r.TaskID && f.check == row.Check })
			if at < 0 {
				at = len(all)
				all = append(all, failedCheck{task: r.TaskID, check: row.Check, message: row.Message})
			}
			all[at].runs++
		}
	}
	for i := range all {
		all[i].of = graded[all[i].task]
	}
	slices.SortStableFunc(all, func(a, b failedCheck) int { return b.runs - a.runs })
	return all
}

// failuresText lists failed checks with the message of the first run that failed them.
func (g *Group) failuresText(w io.Writer) {
	all := g.failures()
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "\nfailed checks, the most frequent first:")
	for i, f := range all {
		if i == maxFailures {
			fmt.Fprintf(w, "  and %d more; --format markdown lists all\n", len(all)-i)
			break
		}
		message := ""
		if f.message != "" {
			message = ": " + display.CutRunes(display.Line(f.message), maxMessage)
		}
		fmt.Fprintf(w, "  %d of %d  %s  %s%s\n", f.runs, f.of, display.Line(f.task), display.Line(f.check), message)
	}
}

// maxMessage bounds what is shown of the message of a check in a list.
const maxMessage = 160

// checkRates returns the pass matrix of a task: every check over its runs with a verdict.
func checkRates(records []ledger.Record) []CheckRate {
	type key struct{ source, check string }
	rates := map[key]*CheckRate{}
	runs := 0
	for i := range records {
		if records[i].Verdict == ledger.Error {
			continue
		}
		for _, row := range failure.RowsOf(&records[i]) {
			k := key{row.Source, row.Check}
			rate := rates[k]
			if rate == nil {
				rate = &CheckRate{Check: row.Check, Source: row.Source, Gate: row.Gate}
				rates[k] = rate
			}
			rate.Runs += strings.Repeat("-", max(0, runs-len(rate.Runs)))
			if len(rate.Runs) > runs {
				continue // reported twice in one run: the first counts here; the grade has handled the second
			}
			rate.N++
			if row.Pass != nil && *row.Pass {
				rate.Passed++
				rate.Runs += "P"
			} else {
				rate.Runs += "F"
			}
		}
		runs++
	}
	var all []CheckRate
	for _, k := range slices.SortedFunc(maps.Keys(rates), func(a, b key) int {
		return strings.Compare(a.source+"\x00"+a.check, b.source+"\x00"+b.check)
	}) {
		rate := rates[k]
		rate.Runs += strings.Repeat("-", max(0, runs-len(rate.Runs)))
		rate.Mixed = rate.Passed > 0 && rate.Passed < runs
		all = append(all, *rate)
	}
	return all
}

// notesOf describes what went wrong in a run.
func notesOf(r *ledger.Record) []string {
	var notes []string
	if r.Grade != nil && r.Grade.Malformed > 0 {
		notes = append(notes, fmt.Sprintf("malformed rows: %d", r.Grade.Malformed))
	}
	if r.Grade != nil && r.Grade.Reason != "" && r.Verdict != ledger.Pass {
		notes = append(notes, "grade: "+r.Grade.Reason)
	}
	if r.HiddenTests != nil && r.HiddenTests.Error != "" {
		notes = append(notes, "hidden tests: "+r.HiddenTests.Error)
	}
	if r.AgentError != nil {
		notes = append(notes, fmt.Sprintf("agent error: %s (aborted: %t)", r.AgentError.Message, r.AgentError.Aborted))
	}
	if r.PreflightError != nil {
		notes = append(notes, fmt.Sprintf("preflight error: %s (exit %d)", r.PreflightError.Message,
			r.PreflightError.ExitCode))
	} else if r.Verdict == ledger.Error {
		notes = append(notes, strings.TrimSuffix(fmt.Sprintf("error (%s): %s", r.ErrorClass, r.ErrorMessage), ": "))
	}
	return notes
}
