package stats

import (
	"cmp"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// The names of the intervals for corrected differences of tasks with several runs.
const (
	methodCorrectedT         = "corrected-t"
	methodPerAgentCorrectedT = "per-agent-corrected-t"
)

// compareCorrected measures the difference of two arms' true pass rates behind a judge that errs
// alike on both, with the task as the unit; the values of the pairs are the judge's verdicts, 1 or
// 0.
//
// Formula: Δ = d̄/J, d̄ and its test as in [Compare], J = TPR + TNR − 1. One run per arm and task
// without clusters: limits by z, smoothed. Otherwise Var(Δ) = [Var(d̄) + Δ²(TPR(1−TPR)/m1 +
// TNR(1−TNR)/m0)]/J² with Var(d̄) over tasks, cluster-robust where tasks are clustered, the rates
// in it smoothed to (TP+1)/(m1+2) and (TN+1)/(m0+2), and limits by t. Δ = 0 exactly where d̄ = 0,
// so the p-value is that of the verdicts.
//
// Use it for a dimension that a calibrated judge decides. Coverage is at least 94% from 20 tasks
// with 2 or 3 runs, 30 with one, and 20 labels of each kind on, for judges with TPR and TNR of 0.8
// and more.
//
// Do not use it where [Homogeneity] asks for parameters per agent: [compareCorrectedPerAgent].
func compareCorrected(pairs []Pair, judge Calibration, config CompareConfig) (Comparison, error) {
	if err := judge.usable(); err != nil {
		return Comparison{}, err
	}
	config.Level = cmp.Or(config.Level, DefaultLevel)
	comparison, sample, err := measure(pairs, config, false)
	if err != nil {
		return Comparison{}, err
	}
	tpr, tnr := judge.smoothed()
	youden := tpr.rate + tnr.rate - 1
	se, df := sample.spread(comparison, config.Level)
	if youden <= 1e-9 {
		return comparison.unknown(methodCorrectedT, config.Level), nil
	}
	centre := comparison.Est / youden
	se = math.Sqrt(se*se+centre*centre*(tpr.variance()+tnr.variance())) / youden
	interval := symmetric(centre, se, studentQuantile(config.Level, df), config.Level, methodCorrectedT)
	if sample.isSingleBinary() {
		exact, err := pairedCorrectedDifference(comparison.Wins, comparison.Losses, comparison.Tasks, judge,
			config.Level)
		if err != nil {
			return Comparison{}, err
		}
		interval, se = exact, exact.SE
	}
	comparison.Est = clamp(comparison.Est/judge.Youden(), -1, 1)
	comparison.correct(interval, se, df, config)
	return comparison, nil
}

// compareCorrectedPerAgent is [compareCorrected] for a judge with different error rates on each
// arm.
//
// Formula: Δ = θ_A − θ_B with [RoganGladen] per arm. One run per arm and task without clusters: the
// limits by z. Otherwise Var(Δ) is the variance over tasks of the mean of ā/J_A − b̄/J_B plus
// (1−θ)²·TNR(1−TNR)/(m0·J²) + θ²·TPR(1−TPR)/(m1·J²) of both arms, rates smoothed, and limits by t;
// the p-value belongs to the same statistic.
//
// Use it where [Homogeneity] asks for parameters per agent. Coverage is at least 94% from 20 tasks
// with 2 or 3 runs, 30 with one, and 20 labels of each kind and arm on.
//
// Do not use it with a common calibration: the shared error would be counted twice.
func compareCorrectedPerAgent(pairs []Pair, candidate, baseline Calibration, config CompareConfig) (Comparison,
	error,
) {
	for _, judge := range []Calibration{candidate, baseline} {
		if err := judge.usable(); err != nil {
			return Comparison{}, fmt.Errorf("agent %q: %w", judge.Agent, err)
		}
	}
	config.Level = cmp.Or(config.Level, DefaultLevel)
	comparison, sample, err := measure(pairs, config, false)
	if err != nil {
		return Comparison{}, err
	}
	a, b := smoothCalibration(sample.candidateMean, candidate), smoothCalibration(sample.baselineMean, baseline)
	if a.youden <= 1e-9 || b.youden <= 1e-9 {
		return comparison.unknown(methodPerAgentCorrectedT, config.Level), nil
	}
	scaled, err := newPairedSample(scale(pairs, 1/a.youden, 1/b.youden), false)
	if err != nil {
		return Comparison{}, err
	}
	se, df := scaled.standardError()
	if se == 0 || df < 1 {
		se, df = sample.spread(comparison, config.Level)
		se /= math.Min(a.youden, b.youden)
	}
	se = math.Sqrt(se*se + a.variance + b.variance)
	centre := a.theta - b.theta
	interval := symmetric(centre, se, studentQuantile(config.Level, df), config.Level, methodPerAgentCorrectedT)
	if sample.isSingleBinary() {
		exact, err := perAgentCorrectedDifference(tableOf(pairs), candidate, baseline, config.Level)
		if err != nil {
			return Comparison{}, err
		}
		interval, se = exact, exact.SE
	}
	first, _, err := RoganGladen(sample.candidateMean, candidate.TPR(), candidate.TNR())
	if err != nil {
		return Comparison{}, err
	}
	second, _, err := RoganGladen(sample.baselineMean, baseline.TPR(), baseline.TNR())
	if err != nil {
		return Comparison{}, err
	}
	comparison.Est, comparison.P = clamp(first-second, -1, 1), studentTail(centre/se, df)
	comparison.Exact, comparison.PMid = false, nil
	comparison.Method = methodPerAgentCorrectedT
	comparison.Reason = "the judge's error rates differ between the arms"
	comparison.correct(interval, se, df, config)
	return comparison, nil
}

// correct puts the corrected interval in the place of the one for verdicts, and the difference that
// it can detect.
func (c *Comparison) correct(interval Interval, se, df float64, config CompareConfig) {
	interval.Est = c.Est
	limited := interval.cutTo(-1)
	c.Interval, c.SE, c.T, c.PT, c.boundedInterval, c.marginInterval = &limited, se, nil, nil, &limited, nil
	alpha := (1 - config.Level) / float64(max(1, config.Tests))
	start := (distuv.UnitNormal.Quantile(1-alpha/2) + distuv.UnitNormal.Quantile(DefaultPower)) * se
	c.MDE = leastEffect(start, 1, DefaultPower, func(effect float64) float64 {
		return studentPower(effect/se, df, alpha)
	})
}

// unknown returns the comparison under a judge that smoothing leaves no better than a coin.
func (c Comparison) unknown(method string, level float64) Comparison {
	nothing := uninformative(level, method)
	nothing.Est = c.Est
	c.Interval, c.boundedInterval, c.marginInterval = &nothing, nil, nil
	c.P, c.PMid, c.MDE = 1, nil, undetectable
	c.Warnings = append(c.Warnings, noBetterThanACoin)
	return c
}

// spread returns the standard error of the mean difference with its degrees of freedom. Differences
// that are all equal are not certainty: theirs is that of the add-two interval.
func (s *pairedSample) spread(comparison Comparison, level float64) (se, df float64) {
	se, df = s.standardError()
	if se <= 1e-12*math.Max(1, math.Abs(comparison.Est)) || df < 1 {
		se, df = s.addTwo(level).SE, math.Max(1, df)
	}
	return se, df
}

// smoothedRate returns a success rate with one success and one failure added.
type smoothedRate struct{ rate, n float64 }

func (r smoothedRate) variance() float64 { return r.rate * (1 - r.rate) / r.n }

func (c Calibration) smoothed() (tpr, tnr smoothedRate) {
	m1, m0 := float64(c.M1)+2, float64(c.M0)+2
	return smoothedRate{(float64(c.TP) + 1) / m1, m1}, smoothedRate{(float64(c.TN) + 1) / m0, m0}
}

// usable refuses counts that do not fit and judges that carry no information.
func (c Calibration) usable() error {
	return cmp.Or(c.check(), checkInformative(c.TPR(), c.TNR()))
}

// scale multiplies the verdicts on both arms.
func scale(pairs []Pair, candidate, baseline float64) []Pair {
	times := func(values []float64, factor float64) []float64 {
		scaled := make([]float64, len(values))
		for i, value := range values {
			scaled[i] = factor * value
		}
		return scaled
	}
	scaled := make([]Pair, len(pairs))
	for i, pair := range pairs {
		pair.Candidate, pair.Baseline = times(pair.Candidate, candidate), times(pair.Baseline, baseline)
		scaled[i] = pair
	}
	return scaled
}

// tableOf counts tasks with one run per arm.
func tableOf(pairs []Pair) pairedTable {
	var table pairedTable
	for _, pair := range pairs {
		if !pair.complete() {
			continue
		}
		switch first, second := pair.Candidate[0] == 1, pair.Baseline[0] == 1; {
		case first && second:
			table.Both++
		case first:
			table.FirstOnly++
		case second:
			table.SecondOnly++
		default:
			table.Neither++
		}
	}
	return table
}
