package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Where the outcome space is small, coverage is not simulated but summed over all outcomes: these
// tests have no noise.

func binomialWeights(n int, p float64) []float64 {
	weights := make([]float64, n+1)
	for k := range weights {
		weights[k] = distuv.Binomial{N: float64(n), P: p}.Prob(float64(k))
	}
	return weights
}

func proportionCoverage(t testing.TB, method string, n int, rates []float64) []float64 {
	t.Helper()
	intervals := make([]Interval, n+1)
	for k := range intervals {
		intervals[k] = must[Interval](t)(Proportion(k, n, .95, method))
	}
	coverage := make([]float64, len(rates))
	for i, rate := range rates {
		for k, weight := range binomialWeights(n, rate) {
			if intervals[k].Contains(rate) {
				coverage[i] += weight
			}
		}
	}
	return coverage
}

func ratesBetween(lo, hi, step float64) []float64 {
	var rates []float64
	for i := 0; lo+float64(i)*step <= hi+1e-9; i++ {
		rates = append(rates, lo+float64(i)*step)
	}
	return rates
}

// discordantCoverage sums over all tables of n paired tasks with the given chances of a win and a
// loss.
func discordantCoverage(n int, win, loss float64, contains func(b, c int) bool) float64 {
	coverage := 0.0
	for b := 0; b <= n; b++ {
		for c := 0; b+c <= n; c++ {
			if contains(b, c) {
				coverage += math.Exp(logFactorial(n) - logFactorial(b) - logFactorial(c) - logFactorial(n-b-c) +
					powLog(win, b) + powLog(loss, c) + powLog(1-win-loss, n-b-c))
			}
		}
	}
	return coverage
}

func powLog(p float64, k int) float64 {
	if k == 0 {
		return 0
	}
	return float64(k) * math.Log(p)
}

// judgedCoverage sums over all outcomes of n judged runs and the labels, for a true rate behind a
// judge with the given errors.
func judgedCoverage(n, m1, m0 int, truth, tpr, tnr float64,
	interval func(k int, c Calibration) (Interval, error),
) float64 {
	observed := truth*tpr + (1-truth)*(1-tnr)
	runs, hits, rejections := binomialWeights(n, observed), binomialWeights(m1, tpr), binomialWeights(m0, tnr)
	covered, defined := 0.0, 0.0
	for k, wk := range runs {
		for tp, wtp := range hits {
			for tn, wtn := range rejections {
				weight := wk * wtp * wtn
				if weight < 1e-12 {
					continue
				}
				got, err := interval(k, Calibration{TP: tp, M1: m1, TN: tn, M0: m0})
				if err != nil {
					continue // a judge that looks like a coin gets no interval, and none can be wrong
				}
				defined += weight
				if got.Contains(truth) {
					covered += weight
				}
			}
		}
	}
	return covered / defined
}
