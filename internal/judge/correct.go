package judge

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// BiasCorrection is the pass rate of an arm in a dimension, as the panel judged it and corrected
// for the panel's errors.
type BiasCorrection struct {
	ObservedRate float64 `json:"observedRate"`
	// CorrectedRate and its limits are nil without a valid calibration.
	CorrectedRate *float64 `json:"correctedRate"`
	TPR           *float64 `json:"tpr"`
	TNR           *float64 `json:"tnr"`
	CI95Low       *float64 `json:"ci95Low"`
	CI95High      *float64 `json:"ci95High"`
	Dimension     string   `json:"dimension"`
	Agent         string   `json:"agent"` // the arm
	// N counts the runs of the rate: those that the panel decided, and Facts, which fail without
	// it, because their check failed or they are disqualified.
	N     int `json:"n"`
	Facts int `json:"facts,omitempty"`
	// Undecided are planned runs that no rate knows: the panel came to no verdict, or there is no
	// run. WorstRate and BestRate are what the corrected rate would be for all their outcomes, or
	// the observed one where none is corrected.
	Undecided int      `json:"undecided,omitempty"`
	WorstRate *float64 `json:"worstRate,omitempty"`
	BestRate  *float64 `json:"bestRate,omitempty"`
	// NEff is the number of independent runs that the N are worth.
	NEff float64 `json:"nEff"`
	M1   int     `json:"m1"`
	M0   int     `json:"m0"`
	// RawTheta is the corrected rate before it was cut to [0, 1].
	RawTheta *float64 `json:"rawTheta"`
	Method   string   `json:"method"`
	// Status is ok, uncalibrated or judge-uninformative.
	Status string `json:"status"`
}

// Judged are the verdicts of a judge on one question, by run; true is a pass. Runs without a
// verdict are left out.
type Judged map[ledger.Cell]bool

// Cells returns the runs, sorted by task and run.
func (j Judged) Cells() []ledger.Cell {
	return slices.SortedFunc(maps.Keys(j), func(a, b ledger.Cell) int {
		return cmp.Or(strings.Compare(a.TaskID, b.TaskID), a.RunIndex-b.RunIndex, strings.Compare(a.Arm, b.Arm))
	})
}

// byTask returns the verdicts on an arm task by task, 1 for a pass.
func (j Judged) byTask(arm string) (tasks [][]float64, passed, n int) {
	last := ""
	for _, cell := range j.Cells() {
		if cell.Arm != arm {
			continue
		}
		if n == 0 || cell.TaskID != last {
			tasks, last = append(tasks, nil), cell.TaskID
		}
		outcome := 0.0
		if j[cell] {
			outcome = 1
			passed++
		}
		n++
		tasks[len(tasks)-1] = append(tasks[len(tasks)-1], outcome)
	}
	return tasks, passed, n
}

// Errors is what people's labels say about the errors of a judge on one question.
type Errors struct {
	Pooled stats.Calibration   `json:"pooled"`
	PerArm []stats.Calibration `json:"perArm"` // of the arms that have labels
	// Homogeneity says whether the judge errs equally on all arms; nil if fewer than two have
	// labels of both kinds.
	Homogeneity *stats.HomogeneityResult `json:"homogeneity,omitempty"`
}

// For returns the error rates that correct verdicts on an arm: its own, of which perArm is true,
// where the judge errs differently on the arms, else the common ones. They are those of no label
// where an arm needs its own and has none.
func (e *Errors) For(arm string) (rates stats.Calibration, perArm bool) {
	if e.Homogeneity == nil || !e.Homogeneity.PerAgent {
		return e.Pooled, false
	}
	if own := e.Own(arm); own.M1 > 0 && own.M0 > 0 {
		return own, true
	}
	return stats.Calibration{}, false
}

// Own returns what the labels of an arm say; nothing without labels.
func (e *Errors) Own(arm string) stats.Calibration {
	for _, one := range e.PerArm {
		if one.Agent == arm {
			return one
		}
	}
	return stats.Calibration{}
}

// Correct estimates the pass rate of an arm behind the errors of the judge. There must be a verdict
// on the arm.
func (e *Errors) Correct(arm string, judged Judged, level float64) (stats.Correction, error) {
	tasks, passed, n := judged.byTask(arm)
	effective, err := stats.EffectiveRuns(tasks)
	if err != nil {
		return stats.Correction{}, err
	}
	rates, _ := e.For(arm)
	return stats.CorrectRate(passed, n, effective, rates, level)
}

// Correct corrects the rate of an arm over the runs that the panel decided. Without a valid
// calibration nothing is known about the judge. Rates are never fed back into scores.
func (c *Calibration) Correct(arm string, judged Judged, level float64) (BiasCorrection, error) {
	known := Errors{}
	if c.Valid() {
		known = c.Errors
	}
	rate, err := known.Correct(arm, judged, level)
	if err != nil {
		return BiasCorrection{}, err
	}
	correction := BiasCorrection{
		ObservedRate: rate.Observed,
		TPR:          rate.TPR,
		TNR:          rate.TNR,
		Dimension:    c.Dimension,
		Agent:        arm,
		N:            rate.N,
		NEff:         rate.NEff,
		M1:           rate.M1,
		M0:           rate.M0,
		Method:       rate.Method,
		Status:       rate.Status,
	}
	if c.Status == stats.StatusUninformative {
		correction.Status = c.Status
	}
	if correction.Status == stats.StatusOK {
		correction.CorrectedRate, correction.RawTheta = rate.Est, rate.Raw
		correction.CI95Low, correction.CI95High = rate.Lo, rate.Hi
	}
	return correction, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
