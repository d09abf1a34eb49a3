package evidence

import (
	"encoding/json"
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// row holds the fields of a graded check that are read.
type row struct {
	Test   string   `json:"test"`
	Pass   *bool    `json:"pass"`
	Weight *float64 `json:"weight"`
}

// rowsOf returns the checks of a record by name. Those that count nothing are left out, and one
// that was reported twice passed only if it did so twice.
func rowsOf(record *ledger.Record) map[string]bool {
	rows := map[string]bool{}
	for _, data := range record.Rows() {
		var r row
		if json.Unmarshal(data, &r) != nil || r.Test == "" || r.Pass == nil || r.Weight != nil && *r.Weight == 0 {
			continue
		}
		before, known := rows[r.Test]
		rows[r.Test] = *r.Pass && (before || !known)
	}
	return rows
}

// verifyOf returns the result of the harness's own check: the task's command or, without one, the
// mechanical grade; nil if nothing was measured.
func verifyOf(record *ledger.Record) *session.VerifyResult {
	if v := record.Verify; v != nil {
		if v.Error != "" {
			return nil
		}
		return &session.VerifyResult{Passed: v.Passed, ExitCode: v.ExitCode, EndMs: v.EndMs}
	}
	grade := record.Grade
	if grade == nil || grade.Verdict != ledger.Pass && grade.Verdict != ledger.Fail {
		return nil
	}
	result := &session.VerifyResult{Passed: grade.Verdict == ledger.Pass, EndMs: gradedAt(record)}
	if !result.Passed {
		result.ExitCode = 1
	}
	return result
}

// gradedAt is when grading ended.
func gradedAt(record *ledger.Record) int64 {
	if record.PhaseMs["grade"] == 0 {
		return record.EndMs
	}
	at := record.StartMs
	for _, phase := range []string{"setup", "preflight", "agent", "grade"} {
		at += record.PhaseMs[phase]
	}
	return min(at, record.EndMs)
}

// targets splits the checks that an attempt had to make pass by how they ended, and names those
// that passed at the base and fail now.
func targets(task *Task, rows map[string]bool) (passed, failed, regressed []string) {
	for name, pass := range rows {
		atBase := slices.Contains(task.PassingAtBase, name)
		switch {
		case atBase && !pass:
			regressed = append(regressed, name)
		case atBase:
		case pass:
			passed = append(passed, name)
		default:
			failed = append(failed, name)
		}
	}
	slices.Sort(regressed)
	return passed, failed, regressed
}
