package judge

import (
	"maps"
	"slices"

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
	N             int      `json:"n"`
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

// Correct corrects the observed pass rates of every arm and dimension. Runs without a verdict are
// left out; rates are never fed back into scores.
func Correct(result *Result, calibrations []Calibration) ([]BiasCorrection, error) {
	corrections := []BiasCorrection{}
	for _, calibration := range calibrations {
		byArm := result.outcomes(calibration.Dimension)
		for _, arm := range sortedKeys(byArm) {
			correction, err := correctRate(byArm[arm], arm, &calibration)
			if err != nil {
				return nil, err
			}
			corrections = append(corrections, correction)
		}
	}
	return corrections, nil
}

// outcomes returns the verdicts on a dimension, 1 for Pass, by arm and task.
func (r *Result) outcomes(dimension string) map[string]map[string][]float64 {
	found := map[string]map[string][]float64{}
	for _, c := range r.Cells {
		verdict := c.Dimensions[dimension]
		if verdict.Result == nil {
			continue
		}
		if found[c.Arm] == nil {
			found[c.Arm] = map[string][]float64{}
		}
		passed := 0.0
		if *verdict.Result == Pass {
			passed = 1
		}
		found[c.Arm][c.Task] = append(found[c.Arm][c.Task], passed)
	}
	return found
}

func correctRate(byTask map[string][]float64, arm string, calibration *Calibration) (BiasCorrection, error) {
	var tasks [][]float64
	passed, n := 0.0, 0
	for _, task := range sortedKeys(byTask) {
		tasks = append(tasks, byTask[task])
		for _, outcome := range byTask[task] {
			passed += outcome
			n++
		}
	}
	effective, err := stats.EffectiveRuns(tasks)
	if err != nil {
		return BiasCorrection{}, err
	}
	errors, valid := calibration.For(arm)
	c, err := stats.CorrectRate(int(passed), n, effective, errors, stats.DefaultLevel)
	if err != nil {
		return BiasCorrection{}, err
	}
	correction := BiasCorrection{
		ObservedRate: c.Observed,
		TPR:          c.TPR,
		TNR:          c.TNR,
		Dimension:    calibration.Dimension,
		Agent:        arm,
		N:            n,
		NEff:         effective,
		M1:           errors.M1,
		M0:           errors.M0,
		Method:       stats.MethodLangReiczigel,
		Status:       c.Status,
	}
	if !valid {
		correction.Status = stats.StatusUncalibrated // where the calibration is valid, the arm has no labels of its own
		if calibration.Status == stats.StatusUninformative {
			correction.Status = stats.StatusUninformative
		}
		return correction, nil
	}
	if c.Status == stats.StatusOK {
		correction.CorrectedRate, correction.RawTheta = c.Est, c.Raw
		correction.CI95Low, correction.CI95High = c.Lo, c.Hi
	}
	return correction, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
