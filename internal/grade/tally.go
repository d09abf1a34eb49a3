package grade

import (
	"math"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
)

// tally is the sum of rows.
type tally struct {
	// GatesPass is false when a gate failed. Without gates it is true.
	GatesPass bool
	// Score is the passing weight by the whole weight, or nil for a task of gates only.
	Score *float64
	// FullMarks means that every scored row passed and none was malformed.
	FullMarks bool

	Gates, Scored, Passed, Malformed, Diagnostics int
}

// Checks counts the rows that decide anything.
func (t tally) Checks() int { return t.Gates + t.Scored + t.Malformed }

// tallyOf adds rows up. A malformed row is a failed one of its own weight, or of weight 1.
func tallyOf(rows []Row) tally {
	tally := tally{GatesPass: true}
	var passing, total weights
	for _, row := range rows {
		switch row.Role {
		case Gate:
			tally.Gates++
			tally.GatesPass = tally.GatesPass && row.Pass
			continue
		case Diagnostic:
			tally.Diagnostics++
			continue
		case Scored:
			tally.Scored++
			if row.Pass {
				tally.Passed++
			}
			if row.Share != nil {
				passing.add(row.Weight * *row.Share)
			} else if row.Pass {
				passing.add(row.Weight)
			}
		default:
			tally.Malformed++
		}
		total.add(row.Weight)
	}
	// Whole numbers are compared, because sums of fractions may differ in their last digit.
	tally.FullMarks = tally.Malformed == 0 && tally.Passed == tally.Scored
	if tally.Scored+tally.Malformed > 0 {
		score := passing.over(total)
		tally.Score = &score
	}
	return tally
}

// weights is a sum that does not overflow: beside the plain sum it keeps one of weights scaled
// down.
type weights struct{ sum, scaled float64 }

func (w *weights) add(weight float64) {
	w.sum += weight
	w.scaled += weight / (1 << 20)
}

func (w weights) over(total weights) float64 {
	share := w.sum / total.sum
	if math.IsInf(total.sum, 0) {
		share = w.scaled / total.scaled
	}
	return min(max(share, 0), 1)
}

// Effective returns the score that counts: the raw one, or 0 when the grader was not healthy, a
// gate failed or the judge said no. A task without a score has none.
func Effective(raw *float64, healthy, gatesPass, judgePass bool) *float64 {
	if raw == nil {
		return nil
	}
	score := *raw
	if !healthy || !gatesPass || !judgePass {
		score = 0
	}
	return &score
}

// The verdicts of a grade.
const (
	VerdictPass  = "pass"
	VerdictFail  = "fail"
	VerdictError = "error"
)

// health describes the graders of one attempt.
type health struct {
	// broken says why a grader did not work on the agent's copy; empty means that it did.
	broken string
	cause  string // the same for programs: one of the Cause words, or empty
	// graderFault is set when the grader does not do its work without the agent either: then
	// nothing was measured.
	graderFault bool
	// works is set when the grader broke with the agent's work and then worked with the same files,
	// and never broke without them: this is chance, or a program of the agent that chooses when to
	// break it.
	works bool
}

func (h health) ok() bool { return h.broken == "" }

// or combines the health of two graders: that of the first broken one, preferring one that is
// broken without the agent too.
func (h health) or(other health) health {
	if h.ok() || other.graderFault && !h.graderFault {
		return other
	}
	return h
}

// enough reports whether the scored rows suffice: all of them, or the share that the task asks for.
func (t tally) enough(threshold *float64) bool {
	if threshold == nil || t.Score == nil || t.Malformed > 0 {
		return t.FullMarks
	}
	return *t.Score >= *threshold-1e-9 // sums of fractions may differ in their last digit
}

// decide turns a tally into a grade.
func decide(tally tally, threshold *float64, h health, reasons []string) ledger.Grade {
	grade := ledger.Grade{
		GatesPass: tally.GatesPass,
		Score:     tally.Score,
		Malformed: tally.Malformed,
		Healthy:   h.ok(),
		Reason:    display.CutBytes(strings.Join(reasons, "; "), 1000),
	}
	switch {
	case !h.ok() && h.graderFault:
		grade.Verdict, grade.Reason = VerdictError, h.broken
	case !h.ok():
		grade.Verdict, grade.Reason = VerdictFail, h.broken
	case tally.Checks() == 0:
		grade.Verdict, grade.Reason = VerdictError, "the graders made no check: nothing was measured"
	case tally.GatesPass && tally.enough(threshold):
		grade.Verdict = VerdictPass
	default:
		grade.Verdict = VerdictFail
	}
	return grade
}
