package stats

import (
	"cmp"
	"fmt"
	"math"
)

// Label is one run with the human's and the judge's verdict, as scores; 1 is Pass and 0 is Fail.
type Label struct {
	Human float64 `json:"human"`
	Judge float64 `json:"judge"`
}

// PPIResult is a prediction-powered estimate and the weight it gave to the judge.
type PPIResult struct {
	Interval
	Lambda float64
}

// PPIPlusPlus is prediction-powered inference with the judge weighted by its worth.
//
// Formula: λ = Cov(Y, f)/(Var(f_L) + (n_L/n_U)·Var(f_U)), cut to [0, 1]; θ = Ȳ_L + λ(f̄_U − f̄_L);
// Var = Var(Y − λf)/n_L + λ²·Var(f_U)/n_U; limits by t with n_L − 1 degrees of freedom, because the
// labels carry most of the variance.
//
// Use it when labels are a random sample of the judged runs. Coverage is at least 94% from 100
// labels on at rates between 20% and 80%, and 93% at 50.
//
// Do not use it with a balanced label set ([CorrectRate]) or under 50 labels.
func PPIPlusPlus(labelled []Label, judged []float64, level float64) (PPIResult, error) {
	if err := checkLabels(labelled, judged, level); err != nil {
		return PPIResult{}, err
	}
	m := momentsOf(labelled, judged)
	labels, runs := float64(len(labelled)), float64(len(judged))
	lambda := 0.0
	if spread := m.judgeVariance + labels/runs*m.unlabelledVariance; spread != 0 {
		lambda = clamp(m.covariance/spread, 0, 1)
	}
	residual := m.humanVariance - 2*lambda*m.covariance + lambda*lambda*m.judgeVariance
	se := math.Sqrt(math.Max(0, residual)/labels + lambda*lambda*m.unlabelledVariance/runs)
	est := m.humanMean + lambda*(m.unlabelledMean-m.judgeMean)
	interval := symmetric(est, se, studentQuantile(level, labels-1), level, "ppi++")
	if se == 0 {
		interval.Warnings = append(interval.Warnings, "human and judge show no variance: the confidence interval "+
			"has no width")
	}
	return PPIResult{Interval: interval, Lambda: lambda}, nil
}

// labelMoments are the sample moments that the estimate needs.
type labelMoments struct {
	humanMean, judgeMean, unlabelledMean             float64
	humanVariance, judgeVariance, unlabelledVariance float64
	covariance                                       float64
}

func momentsOf(labelled []Label, judged []float64) labelMoments {
	humans, judges := make([]float64, len(labelled)), make([]float64, len(labelled))
	for i, label := range labelled {
		humans[i], judges[i] = label.Human, label.Judge
	}
	var m labelMoments
	m.humanMean, m.humanVariance = moments(humans)
	m.judgeMean, m.judgeVariance = moments(judges)
	m.unlabelledMean, m.unlabelledVariance = moments(judged)
	for i := range humans {
		m.covariance += (humans[i] - m.humanMean) * (judges[i] - m.judgeMean)
	}
	m.covariance /= float64(len(labelled) - 1)
	return m
}

func checkLabels(labelled []Label, judged []float64, level float64) error {
	if len(labelled) < 2 || len(judged) < 2 {
		return fmt.Errorf("labelled and judged runs must be at least 2 each, not %d and %d", len(labelled), len(judged))
	}
	for i, label := range labelled {
		if err := checkFinite(fmt.Sprintf("label %d", i+1), label.Human, label.Judge); err != nil {
			return err
		}
	}
	return cmp.Or(checkFinite("verdict", judged...), checkOpenUnit("level", level))
}
