package query

import (
	"context"

	"github.com/fit-eval/fit/internal/query/internal/scan"
)

// Mark is a place in the outline of a trace: entries that follow each other in one lane.
type Mark struct {
	Index int // of the first entry
	Count int
	Line  int64 // that they stand in
	Lane  string
	// Error says that it is a tool result that failed; such a mark has one entry.
	Error bool
}

// Outline shows where the entries of all lanes are, without their content. With an index only the
// lines with errors are read.
func (t *Trace) Outline(ctx context.Context, visit func(Mark)) (*Info, error) {
	return t.walk(ctx, plan{
		visit: func(e *Cursor) error {
			visit(Mark{
				Index: e.Index,
				Count: 1,
				Line:  e.Line,
				Lane:  LaneName(e.Lane()),
				Error: e.IsError(),
			})
			return nil
		},
		want: func(r *record) bool {
			if r.flags&flagError != 0 {
				return true
			}
			if r.turns > 0 {
				visit(Mark{
					Index: int(r.first),
					Count: int(r.turns),
					Line:  int64(r.line),
					Lane:  t.index.Lanes[r.lane].Name,
				})
			}
			return false
		},
	})
}

// Matching shows the numbers of the entries that meet the criteria.
func (t *Trace) Matching(ctx context.Context, c Criteria, visit func(index int)) (*Info, error) {
	return t.matching(ctx, c, func(e *Cursor) error { visit(e.Index); return nil })
}

// mayMatch reports whether a line can hold an entry that meets the criteria, by the index.
func (t *Trace) mayMatch(c Criteria, r *record) bool {
	switch {
	case c.Error && r.flags&flagError == 0, c.Tool != "" && (r.kind != scan.Assistant || !t.index.uses(r, c.Tool)):
		return false
	case c.Role == "":
		return true
	}
	return r.kind == roleKinds[c.Role]
}

// Match reports whether an entry meets the criteria.
func (c Criteria) Match(entry *Entry) bool {
	return c.match(&Cursor{Index: entry.Index, Role: entry.Role, entry: entry})
}

// Indexed reports whether the trace has an index, so that questions about a part of it read that
// part only.
func (t *Trace) Indexed() bool { return t.index != nil }
