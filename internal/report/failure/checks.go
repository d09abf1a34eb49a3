// Package failure says why a run did not pass: the rows of its graders, the checks it failed, and
// for a run without a verdict the cause and what to do about it.
package failure

import (
	"encoding/json"
	"fmt"
	"slices"

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

// Checks returns everything that a run failed, a command and a judge included.
func Checks(r *ledger.Record) []Row {
	failed := slices.DeleteFunc(RowsOf(r), func(row Row) bool { return row.Pass != nil && *row.Pass })
	if v := r.Verify; v != nil && !v.Passed {
		message := fmt.Sprintf("exit code %d", v.ExitCode)
		switch {
		case v.Error != "":
			message = v.Error
		case v.TimedOut:
			message = "it ran out of time"
		}
		failed = append(failed, Row{Check: "verifyCommand", Source: "verify", Message: message})
	}
	if j := r.JudgeVerdict; j != nil && j.Verdict == ledger.Fail {
		failed = append(failed, Row{Check: "judge", Source: "judge", Message: j.Summary})
	}
	if len(failed) == 0 && r.Verdict == ledger.Fail && r.Grade != nil && r.Grade.Reason != "" {
		failed = append(failed, Row{Check: "grade", Source: "grade", Message: r.Grade.Reason})
	}
	return failed
}
