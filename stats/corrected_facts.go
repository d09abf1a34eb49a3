package stats

import (
	"cmp"
	"math"
)

// JudgedPair is a task of which a judge decided some runs, whose verdicts are in the Pair. The
// outcomes of the others are facts, such as a failed check.
type JudgedPair struct {
	Pair
	CandidateFacts []float64
	BaselineFacts  []float64
}

// methodJudgedShare is the name of the interval for runs of which a judge decided only some.
const methodJudgedShare = "judged-share-t"

// CompareWithFacts is [compareCorrected], or with perAgent [compareCorrectedPerAgent], for runs of
// which the judge decided only some. Without perAgent, candidate and baseline are the same.
//
// Formula: a verdict v counts (v − (1−TNR))/J, a fact what it is; d_i and its mean Δ as in
// [Compare]. With W the share of judged runs of an arm, a mean over tasks, and P what they
// contribute to its rate, ∂P/∂TPR = −P/J and ∂P/∂TNR = (W−P)/J; Var(Δ) is that over tasks,
// cluster-robust, plus those of TPR and TNR, smoothed, and limits and p-value are by t. Without
// facts it is the function named above.
//
// Use it where the judge is only asked about runs that passed a check, or where runs count as
// failed without it. Coverage is at least 94% from 30 tasks with 2 runs and 40 labels of each kind
// on.
//
// Do not use it with facts that a judge guessed.
func CompareWithFacts(pairs []JudgedPair, candidate, baseline Calibration, perAgent bool, config CompareConfig,
) (Comparison, error) {
	verdicts, values, facts := make([]Pair, len(pairs)), make([]Pair, len(pairs)), false
	for i, pair := range pairs {
		verdicts[i], values[i] = pair.Pair, pair.Pair
		values[i].Candidate = append(append([]float64{}, pair.Candidate...), pair.CandidateFacts...)
		values[i].Baseline = append(append([]float64{}, pair.Baseline...), pair.BaselineFacts...)
		facts = facts || len(pair.CandidateFacts)+len(pair.BaselineFacts) > 0
	}
	switch {
	case !facts && perAgent:
		return compareCorrectedPerAgent(verdicts, candidate, baseline, config)
	case !facts:
		return compareCorrected(verdicts, candidate, config)
	}
	if err := cmp.Or(candidate.usable(), baseline.usable()); err != nil {
		return Comparison{}, err
	}
	config.Level = cmp.Or(config.Level, DefaultLevel)
	comparison, sample, err := measure(values, config, false)
	if err != nil {
		return Comparison{}, err
	}
	a, b := candidate.smoothedJudge(), baseline.smoothedJudge()
	if a.youden() <= 1e-9 || b.youden() <= 1e-9 {
		return comparison.unknown(methodJudgedShare, config.Level), nil
	}
	smoothed, err := correctRuns(pairs, a, b)
	if err != nil {
		return Comparison{}, err
	}
	se, df := smoothed.standardError()
	if se == 0 || df < 1 {
		se, df = sample.spread(comparison, config.Level)
		se /= math.Min(a.youden(), b.youden())
	}
	se = math.Sqrt(se*se + smoothed.calibrationVariance(a, b, perAgent))
	centre := smoothed.candidateMean - smoothed.baselineMean
	observed, err := correctRuns(pairs, candidate.rates(), baseline.rates())
	if err != nil {
		return Comparison{}, err
	}
	comparison.Est = clamp(observed.candidateMean-observed.baselineMean, -1, 1)
	comparison.P, comparison.Exact, comparison.PMid = studentTail(centre/se, df), false, nil
	comparison.Method, comparison.Reason = methodJudgedShare, "the judge decided only some of the runs"
	comparison.correct(symmetric(centre, se, studentQuantile(config.Level, df), config.Level, methodJudgedShare),
		se, df, config)
	return comparison, nil
}

// judgeRates are the error rates of a judge on one arm.
type judgeRates struct{ tpr, tnr smoothedRate }

func (c Calibration) smoothedJudge() judgeRates {
	tpr, tnr := c.smoothed()
	return judgeRates{tpr, tnr}
}

func (c Calibration) rates() judgeRates {
	return judgeRates{smoothedRate{c.TPR(), float64(c.M1)}, smoothedRate{c.TNR(), float64(c.M0)}}
}

func (j judgeRates) youden() float64 { return j.tpr.rate + j.tnr.rate - 1 }

// correctedRuns is a sample of corrected outcomes. share and part are the W and P of
// [CompareWithFacts], of the candidate and of the baseline.
type correctedRuns struct {
	*pairedSample
	share, part [2]float64
}

func correctRuns(pairs []JudgedPair, candidate, baseline judgeRates) (*correctedRuns, error) {
	runs, tasks := &correctedRuns{}, 0.0
	scaled := make([]Pair, len(pairs))
	for i, pair := range pairs {
		own, sides := pair.Pair, [2]float64{}
		parts := [2]float64{}
		for side, arm := range []struct {
			verdicts, facts []float64
			into            *[]float64
			judge           judgeRates
		}{
			{pair.Candidate, pair.CandidateFacts, &own.Candidate, candidate},
			{pair.Baseline, pair.BaselineFacts, &own.Baseline, baseline},
		} {
			*arm.into = nil
			n := float64(max(1, len(arm.verdicts)+len(arm.facts)))
			for _, verdict := range arm.verdicts {
				value := (verdict - 1 + arm.judge.tnr.rate) / arm.judge.youden()
				*arm.into = append(*arm.into, value)
				parts[side] += value / n
				sides[side] += 1 / n
			}
			*arm.into = append(*arm.into, arm.facts...)
		}
		scaled[i] = own
		if own.complete() {
			tasks++
			for side := range sides {
				runs.share[side] += sides[side]
				runs.part[side] += parts[side]
			}
		}
	}
	for side := range runs.share {
		runs.share[side] /= math.Max(1, tasks)
		runs.part[side] /= math.Max(1, tasks)
	}
	var err error
	runs.pairedSample, err = newPairedSample(scaled, false)
	return runs, err
}

// calibrationVariance is the part of the variance that the finite number of labels adds.
func (r *correctedRuns) calibrationVariance(a, b judgeRates, perAgent bool) float64 {
	term := func(judge judgeRates, share, part float64) float64 {
		j := judge.youden()
		return (part*part*judge.tpr.variance() + (share-part)*(share-part)*judge.tnr.variance()) / (j * j)
	}
	if !perAgent { // errors that both arms share cancel out
		return term(a, r.share[0]-r.share[1], r.part[0]-r.part[1])
	}
	return term(a, r.share[0], r.part[0]) + term(b, r.share[1], r.part[1])
}
