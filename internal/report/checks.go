package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// Row is one check of one run.
type Row struct {
	Check   string `json:"check"`
	Source  string `json:"source"` // invariants or tests
	Pass    *bool  `json:"pass,omitempty"`
	Gate    bool   `json:"gate,omitempty"`
	Message string `json:"message,omitempty"`
}

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

// RowsOf reads the rows of a record. They come from graders and may be anything; anything else is
// skipped.
func RowsOf(r *ledger.Record) []Row {
	var rows []Row
	read := func(source string, details []json.RawMessage) {
		for _, raw := range details {
			var parsed struct {
				Test    any  `json:"test"`
				Pass    any  `json:"pass"`
				Gate    any  `json:"gate"`
				Message any  `json:"message"`
				Raw     any  `json:"raw"`
				Bad     bool `json:"parseError"`
			}
			if json.Unmarshal(raw, &parsed) != nil {
				continue
			}
			row := Row{Check: "(unnamed)", Source: source}
			if name, ok := parsed.Test.(string); ok && name != "" {
				row.Check = name
			}
			if pass, ok := parsed.Pass.(bool); ok {
				row.Pass = &pass
			}
			row.Gate = parsed.Gate == true
			if message, ok := parsed.Message.(string); ok {
				row.Message = message
			}
			if parsed.Bad {
				row.Message = "not a row: " + fmt.Sprint(parsed.Raw)
			}
			rows = append(rows, row)
		}
	}
	if r.Invariants != nil {
		read("invariants", r.Invariants.Details)
	}
	if r.HiddenTests != nil {
		read("tests", r.HiddenTests.Details)
	}
	return rows
}

// checkRates returns the pass matrix of a task: every check over its runs with a verdict.
func checkRates(records []ledger.Record) []CheckRate {
	type key struct{ source, check string }
	rates := map[key]*CheckRate{}
	runs := 0
	for i := range records {
		if records[i].Verdict == ledger.Error {
			continue
		}
		for _, row := range RowsOf(&records[i]) {
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
		notes = append(notes, fmt.Sprintf("error (%s): %s", r.ErrorClass, r.ErrorMessage))
	}
	return notes
}
