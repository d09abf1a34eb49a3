package versus

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/session"
)

// Audit lists the signs of cheating in a run directory. It says nothing about who passed.
type Audit struct {
	SchemaVersion string        `json:"schemaVersion"`
	RunID         string        `json:"runId"`
	Runs          int           `json:"runs"`
	Critical      int           `json:"critical"`
	Flags         []AuditedFlag `json:"flags"`
	// Problems say which runs could not be examined, and why.
	Problems []string `json:"problems,omitempty"`

	tool  Tool
	cells []Cell
}

// AuditedFlag is a flag with the run it is about.
type AuditedFlag struct {
	Task string `json:"task"`
	Arm  string `json:"arm"`
	Run  int    `json:"run"`
	session.IntegrityFlag
}

// Audit collects the flags of all attempts that count. No judge is needed.
func (s *Source) Audit() *Audit {
	b := &builder{source: s, report: &EvalReport{}}
	b.head()
	audit := &Audit{
		SchemaVersion: schemaVersion,
		RunID:         b.report.RunID,
		Flags:         []AuditedFlag{},
		Problems:      s.unreadable(),
		tool:          b.report.Tool,
		cells:         b.cells(),
	}
	audit.Runs = len(audit.cells)
	for i := range audit.cells {
		cell := &audit.cells[i]
		audit.Critical += cell.critical()
		for _, flag := range cell.Integrity {
			audit.Flags = append(audit.Flags, AuditedFlag{
				Task:          cell.Task,
				Arm:           cell.Arm,
				Run:           cell.Run,
				IntegrityFlag: flag,
			})
		}
	}
	return audit
}

// Clear records that a person has reviewed the flags of a kind of one run, and that they are not
// cheating.
func (s *Source) Clear(ctx context.Context, task, arm string, run int, kind string, by session.Clearance) error {
	for i := range s.cells {
		cell := &s.cells[i]
		record := cell.Record
		if record.TaskID != task || record.Arm != arm || record.RunIndex != run {
			continue
		}
		is := func(flag session.IntegrityFlag) bool { return flag.Kind == kind }
		if !slices.ContainsFunc(cell.Run.Session.Integrity, is) {
			return fmt.Errorf("run %s/%s/%d has no flag %q", task, arm, run, kind)
		}
		return evidence.AddReview(ctx, s.dir, evidence.Review{
			Key:       record.Key(),
			Record:    record.Hash,
			Flag:      kind,
			Clearance: by,
		})
	}
	return fmt.Errorf("there is no run %s/%s/%d", task, arm, run)
}

// Robot writes the flags as one JSON document.
func (a *Audit) Robot(w io.Writer) error { return robot(w, a) }

// SARIF writes the flags for programs that show findings beside code.
func (a *Audit) SARIF(w io.Writer) error {
	return (&EvalReport{Cells: a.cells, Tool: a.tool}).SARIF(w)
}
