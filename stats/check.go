package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// DefaultLevel is the confidence level used where the caller gives none.
const DefaultLevel = 0.95

// DefaultAlpha is the significance level used where the caller gives none.
const DefaultAlpha = 0.05

// ErrNoData reports a sample with nothing in it.
var ErrNoData = errors.New("no data")

func checkFinite(name string, values ...float64) error {
	for _, value := range values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("%s must be a finite number, not %v", name, value)
		}
	}
	return nil
}

func checkUnit(name string, values ...float64) error {
	for _, value := range values {
		if !(value >= 0 && value <= 1) {
			return fmt.Errorf("%s must be a number between 0 and 1, not %v", name, value)
		}
	}
	return nil
}

// checkOpenUnit guards levels, error rates and powers, for which 0 and 1 make no sense.
func checkOpenUnit(name string, value float64) error {
	if !(value > 0 && value < 1) {
		return fmt.Errorf("%s must be above 0 and below 1, not %v", name, value)
	}
	return nil
}

func checkPositive(name string, value float64) error {
	if !(value > 0) || math.IsInf(value, 0) {
		return fmt.Errorf("%s must be a finite number above 0, not %v", name, value)
	}
	return nil
}

func checkNotNegative(name string, value float64) error {
	if !(value >= 0) || math.IsInf(value, 0) {
		return fmt.Errorf("%s must be a finite number of at least 0, not %v", name, value)
	}
	return nil
}

// maxCount is the largest number up to which every whole number is a float64.
const maxCount = 1 << 53

// checkCount accepts k successes out of n trials, n at least 1.
func checkCount(kName string, k int, nName string, n int) error {
	switch {
	case n < 1:
		return fmt.Errorf("%s must be at least 1, not %d", nName, n)
	case n > maxCount:
		return fmt.Errorf("%s must be at most %d, not %d", nName, maxCount, n)
	case k < 0:
		return fmt.Errorf("%s must be at least 0, not %d", kName, k)
	case k > n:
		return fmt.Errorf("%s is %d, which is more than %s = %d", kName, k, nName, n)
	}
	return nil
}

// normalQuantile returns z such that a two-sided interval ±z has the level.
func normalQuantile(level float64) float64 { return distuv.UnitNormal.Quantile(0.5 + level/2) }

// studentQuantile returns the two-sided quantile of Student's t. Beyond a million degrees of
// freedom it is the normal one to more than six digits.
func studentQuantile(level, df float64) float64 {
	if df > 1e6 {
		return normalQuantile(level)
	}
	return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(0.5 + level/2)
}

// studentTail returns the two-sided p-value of a t statistic.
func studentTail(t, df float64) float64 {
	return math.Min(1, 2*distuv.StudentsT{Sigma: 1, Nu: df}.CDF(-math.Abs(t)))
}

func clamp(x, lo, hi float64) float64 { return math.Min(hi, math.Max(lo, x)) }

// Mean returns the mean of values, and 0 of none.
//
// Formula: Σx/n.
//
// Use it for a number to show beside others.
//
// Do not claim anything by it: it has no limits, as [TaskMean] has.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(max(1, len(values)))
}

// Median returns the middle value.
//
// Formula: the value in the middle of the sorted ones, or the mean of the middle two; 0 of none.
//
// Use it to describe times and turns, whose few large values would move a mean.
//
// Do not use it for costs: what is paid is the sum, and so the mean.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// moments returns the mean and the unbiased variance; the variance of a single value is 0.
func moments(values []float64) (mean, variance float64) {
	mean = Mean(values)
	if len(values) < 2 {
		return mean, 0
	}
	for _, value := range values {
		variance += (value - mean) * (value - mean)
	}
	return mean, variance / float64(len(values)-1)
}
