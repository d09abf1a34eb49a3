package stats

import (
	"cmp"
	"fmt"
	"math"
)

// Calibration is what is known about a judge from human labels: of M1 runs a human passed the judge
// passed TP, of M0 a human failed it failed TN.
type Calibration struct {
	Agent string `json:"agent,omitempty"`
	TP    int    `json:"tp"`
	M1    int    `json:"m1"`
	TN    int    `json:"tn"`
	M0    int    `json:"m0"`
}

// Count adds one label: whether a person and the judge pass the work.
func (c *Calibration) Count(human, judge bool) {
	switch {
	case human && judge:
		c.TP++
	case !human && !judge:
		c.TN++
	}
	if human {
		c.M1++
	} else {
		c.M0++
	}
}

// TPR returns the share of human passes that the judge passes.
func (c Calibration) TPR() float64 { return float64(c.TP) / float64(c.M1) }

// TNR returns the share of human fails that the judge fails.
func (c Calibration) TNR() float64 { return float64(c.TN) / float64(c.M0) }

// Youden is TPR + TNR − 1: 1 for a perfect judge, 0 for a coin.
func (c Calibration) Youden() float64 { return c.TPR() + c.TNR() - 1 }

func (c Calibration) check() error {
	return cmp.Or(checkCount("tp", c.TP, "m1", c.M1), checkCount("tn", c.TN, "m0", c.M0))
}

// The states of a corrected rate.
const (
	// StatusOK: the corrected rate may be printed.
	StatusOK = "ok"
	// StatusUncalibrated: there are no human labels of one of the two kinds.
	StatusUncalibrated = "uncalibrated"
	// StatusUninformative: the labels do not even show that the judge is better than a coin.
	StatusUninformative = "judge-uninformative"
)

// RoganGladen corrects an observed pass rate for the known errors of a judge. It returns the value
// as computed and cut to [0, 1].
//
// Formula: θ = (p + TNR − 1)/(TPR + TNR − 1).
//
// Use it for rates whose calibration transports: it tolerates another base rate, so label sets may
// be balanced.
//
// Do not use it for a single verdict, nor with TPR + TNR ≤ 1, which is an error; nor without an
// interval ([CorrectRate]).
func RoganGladen(observed, tpr, tnr float64) (raw, clipped float64, err error) {
	if err := cmp.Or(
		checkUnit("observed rate", observed),
		checkUnit("true positive rate", tpr),
		checkUnit("true negative rate", tnr),
		checkInformative(tpr, tnr),
	); err != nil {
		return 0, 0, err
	}
	raw = (observed + tnr - 1) / (tpr + tnr - 1)
	return raw, clamp(raw, 0, 1), nil
}

// checkInformative refuses a judge that is no better than a coin.
func checkInformative(tpr, tnr float64) error {
	if tpr+tnr-1 <= 1e-12 {
		return fmt.Errorf("TPR + TNR = %g is not above 1: the judge carries no information", tpr+tnr)
	}
	return nil
}

// langReiczigelResult is the interval with the quantities it is made of.
type langReiczigelResult struct {
	Interval
	// Raw is the corrected rate before it was cut to [0, 1]; RawLo and RawHi are the limits before.
	Raw   float64
	RawLo float64
	RawHi float64
	// Theta, Shift and SmoothSE are θ', d and se of the formula.
	Theta, Shift, SmoothSE float64
}

// methodLangReiczigel names the interval of langReiczigel.
const methodLangReiczigel = "lang-reiczigel"

// langReiczigel returns the interval for the true pass rate behind a judge with estimated errors. k
// and n may be effective counts of clustered runs.
//
// Formula: n' = n+z², p' = (k+z²/2)/n', m1' = m1+2, q1' = (TP+1)/m1', m0' = m0+2, q0' = (TN+1)/m0',
// J' = q0'+q1'−1, θ' = (p'+q0'−1)/J', d = 2z²[θ'q1'(1−q1')/m1' − (1−θ')q0'(1−q0')/m0'], se =
// √(p'(1−p')/n' + θ'²q1'(1−q1')/m1' + (1−θ')²q0'(1−q0')/m0')/|J'|; θ' + d ± z·se cut to [0, 1], and
// all of [0, 1] if J' ≤ 0. The estimate shown is the unsmoothed one.
//
// Use it by default: coverage is at least 94% from n = 30 and 20 labels of each kind on, for
// judges with TPR and TNR of 0.8 and more.
//
// Do not use it with TPR + TNR ≤ 1 (an error), nor where labels are a random sample of the runs,
// which [PPIPlusPlus] uses better.
func langReiczigel(k, n float64, calibration Calibration, level float64) (langReiczigelResult, error) {
	if err := checkPositive("n", n); err != nil {
		return langReiczigelResult{}, err
	}
	if !(k >= 0 && k <= n) {
		return langReiczigelResult{}, fmt.Errorf("k must be a number between 0 and n = %v, not %v", n, k)
	}
	if err := cmp.Or(calibration.check(), checkOpenUnit("level", level)); err != nil {
		return langReiczigelResult{}, err
	}
	raw, clipped, err := RoganGladen(k/n, calibration.TPR(), calibration.TNR())
	if err != nil {
		return langReiczigelResult{}, err
	}
	result, informative := smoothedCorrection(k, n, calibration, level)
	result.Raw = raw
	if !informative {
		result.RawHi = 1
		result.Interval = Interval{
			Est:      clipped,
			Lo:       0,
			Hi:       1,
			Level:    level,
			Method:   methodLangReiczigel,
			Warnings: []string{noBetterThanACoin},
		}
		return result, nil
	}
	result.RawLo = result.Theta + result.Shift - normalQuantile(level)*result.SmoothSE
	result.RawHi = result.Theta + result.Shift + normalQuantile(level)*result.SmoothSE
	result.Interval = Interval{
		Est:    clipped,
		Lo:     result.RawLo,
		Hi:     result.RawHi,
		SE:     result.SmoothSE,
		Level:  level,
		Method: methodLangReiczigel,
	}.cutTo(0)
	return result, nil
}

// noBetterThanACoin explains an interval over everything that is possible.
const noBetterThanACoin = "after smoothing the judge is no better than a coin flip: nothing is known"

// smoothedCorrection also reports whether the judge is still informative after smoothing; with J' ≤
// 0 the formula has no meaning.
func smoothedCorrection(k, n float64, calibration Calibration, level float64) (langReiczigelResult, bool) {
	z2 := normalQuantile(level) * normalQuantile(level)
	runs := n + z2
	p := (k + z2/2) / runs
	q1, q0 := calibration.smoothed()
	youden := q0.rate + q1.rate - 1
	if youden <= 1e-9 {
		return langReiczigelResult{}, false
	}
	theta := (p + q0.rate - 1) / youden
	v1, v0 := q1.variance(), q0.variance()
	return langReiczigelResult{
		Theta:    theta,
		Shift:    2 * z2 * (theta*v1 - (1-theta)*v0),
		SmoothSE: math.Sqrt(p*(1-p)/runs+theta*theta*v1+(1-theta)*(1-theta)*v0) / youden,
	}, true
}

// Correction is a pass rate corrected for the errors of a judge, as reports carry it. Est, Lo and
// Hi are nil where nothing can be computed; they may only be printed as a result when Status is
// StatusOK.
type Correction struct {
	Observed float64
	Est      *float64
	Lo, Hi   *float64
	// Raw is the corrected rate before it was cut to [0, 1].
	Raw    *float64
	TPR    *float64
	TNR    *float64
	N      int
	NEff   float64
	M1, M0 int
	Method string
	Level  float64
	Status string
}

// CorrectRate corrects k passes among n judged runs and says whether the result may be shown.
// effective is the number of independent runs they are worth ([EffectiveRuns]); 0 means n.
//
// Formula: [RoganGladen] with the interval of Lang and Reiczigel at n_eff and k = p·n_eff. Status
// is ok only if WilsonLow(TPR) + WilsonLow(TNR) − 1 > 0.
//
// Use it for every rate a judge produced.
//
// Do not use it with a calibration from another prompt, model or panel, nor with pooled labels for
// agents the judge treats differently ([Homogeneity]).
func CorrectRate(k, n int, effective float64, calibration Calibration, level float64) (Correction, error) {
	if err := cmp.Or(checkProportion(k, n, level), checkNotNegative("effective n", effective)); err != nil {
		return Correction{}, err
	}
	effective = cmp.Or(effective, float64(n))
	observed := float64(k) / float64(n)
	correction := Correction{
		Observed: observed,
		N:        n,
		NEff:     effective,
		M1:       calibration.M1,
		M0:       calibration.M0,
		Method:   methodLangReiczigel,
		Level:    level,
		Status:   StatusUncalibrated,
	}
	if calibration.M1 == 0 && calibration.TP == 0 || calibration.M0 == 0 && calibration.TN == 0 {
		return correction, nil
	}
	if err := calibration.check(); err != nil {
		return Correction{}, err
	}
	tpr, tnr := calibration.TPR(), calibration.TNR()
	correction.TPR, correction.TNR, correction.Status = &tpr, &tnr, StatusUninformative
	if calibration.Youden() <= 1e-12 {
		return correction, nil
	}
	result, err := langReiczigel(observed*effective, effective, calibration, level)
	if err != nil {
		return Correction{}, err
	}
	correction.Est, correction.Lo, correction.Hi, correction.Raw = &result.Est, &result.Lo, &result.Hi, &result.Raw
	if calibration.Informative(level) {
		correction.Status = StatusOK
	}
	return correction, nil
}

// Informative reports whether even the lower Wilson limits of TPR and TNR add up to more than 1.
func (c Calibration) Informative(level float64) bool {
	if c.check() != nil {
		return false
	}
	return wilson(float64(c.TP), float64(c.M1), level).Lo+wilson(float64(c.TN), float64(c.M0), level).Lo > 1
}
