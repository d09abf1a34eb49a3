package stats

import (
	"fmt"
	"math"
)

// The names of the intervals for means.
const (
	MethodT             = "t"
	MethodClusterT      = "cluster-t"
	MethodClusterWilson = "cluster-wilson"
	MethodNone          = "none"
)

// MeanClustered is the mean over all runs with a cluster-robust standard error; each element of
// clusters holds the runs of one task.
//
// Formula: SE = (1/N)·√(Σ_g (Σ_{i∈g}(s_i − s̄))²)·√(G/(G−1)); s̄ ± t_{G−1}·SE, over G clusters and
// N runs.
//
// Use it for 50 clusters and more with rates between 20 % and 80 %, where coverage is at least 94
// %; at 30 clusters it is 92.5 to 95 %.
//
// Do not use it when all clusters agree (its width is then 0) or rates are near 0 or 1: [PassRate].
func MeanClustered(clusters [][]float64, level float64) (Interval, error) {
	if err := checkClusters(clusters); err != nil {
		return Interval{}, err
	}
	if err := checkOpenUnit("level", level); err != nil {
		return Interval{}, err
	}
	if len(clusters) < 2 {
		return Interval{}, fmt.Errorf("one cluster has no spread: a cluster-robust interval needs at least 2")
	}
	mean, se := clusterMean(clusters)
	return symmetric(mean, se, studentQuantile(level, float64(len(clusters)-1)), level, MethodClusterT), nil
}

func clusterMean(clusters [][]float64) (mean, se float64) {
	var total, count float64
	for _, cluster := range clusters {
		for _, value := range cluster {
			total += value
		}
		count += float64(len(cluster))
	}
	mean = total / count
	var squares float64
	for _, cluster := range clusters {
		var residual float64
		for _, value := range cluster {
			residual += value - mean
		}
		squares += residual * residual
	}
	g := float64(len(clusters))
	return mean, math.Sqrt(squares*g/(g-1)) / count
}

// DesignEffect is the factor by which clustering inflates the variance of a mean.
//
// Formula: 1 + (m − 1)·ρ for clusters of mean size m with intra-cluster correlation ρ.
//
// Use it to judge how much repetitions are worth before running them.
//
// Do not use it to correct an interval after the fact: [MeanClustered] and [PassRate] measure the
// clustering instead of assuming it.
func DesignEffect(meanSize, correlation float64) (float64, error) {
	if err := checkPositive("mean cluster size", meanSize); err != nil {
		return 0, err
	}
	if !(correlation >= -1 && correlation <= 1) {
		return 0, fmt.Errorf("intra-cluster correlation is %v, want a number between -1 and 1", correlation)
	}
	return 1 + (meanSize-1)*correlation, nil
}

// EffectiveRuns is the number of independent runs that would carry as much information about the
// pass rate as these clustered ones.
//
// Formula: n_eff = p(1−p)/Var_cl(p), clamped to [G, N]; G (the number of tasks) when all runs
// agree.
//
// Use it to put clustered runs into a formula for independent ones: the Wilson interval, the
// correction of a judge ([CorrectRate]).
//
// Do not use it for scores other than 0 and 1.
func EffectiveRuns(tasks [][]float64) (float64, error) {
	if err := checkClusters(tasks); err != nil {
		return 0, err
	}
	for _, runs := range tasks {
		if err := checkUnit("outcome", runs...); err != nil {
			return 0, err
		}
	}
	return effectiveRuns(tasks), nil
}

func effectiveRuns(tasks [][]float64) float64 {
	groups, runs := float64(len(tasks)), 0.0
	for _, task := range tasks {
		runs += float64(len(task))
	}
	if len(tasks) < 2 {
		return groups
	}
	mean, se := clusterMean(tasks)
	if se == 0 || mean <= 0 || mean >= 1 {
		return groups
	}
	return clamp(mean*(1-mean)/(se*se), groups, runs)
}

// PassRate is the interval for the pass rate of one arm; each element of tasks holds the outcomes
// (0 to 1) of the runs of one task.
//
// Formula: one run per task: [Wilson]. Several: Wilson at p = mean over runs and n =
// n_eff·(z/t_{G−1})² with n_eff of [EffectiveRuns], named "cluster-wilson". A single task with
// several runs says nothing about other tasks: [0, 1], named "none".
//
// Use it for every reported rate. Coverage of "cluster-wilson" is at least 94 % from 20 tasks on
// for rates between 20 % and 80 % and from 50 tasks on between 10 % and 90 %, with 2 to 10 runs per
// task; outside, with strongly correlated runs, it falls to 89 %.
//
// Do not use it to compare two arms by looking whether their intervals overlap: [Compare].
func PassRate(tasks [][]float64, level float64) (Interval, error) {
	if err := checkOpenUnit("level", level); err != nil {
		return Interval{}, err
	}
	effective, err := EffectiveRuns(tasks)
	if err != nil {
		return Interval{}, err
	}
	total, runs := 0.0, 0
	for _, task := range tasks {
		for _, value := range task {
			total += value
		}
		runs += len(task)
	}
	mean := total / float64(runs)
	switch {
	case runs == len(tasks):
		return wilson(total, float64(runs), level), nil
	case len(tasks) == 1:
		return Interval{
			Est:      mean,
			Lo:       0,
			Hi:       1,
			Level:    level,
			Method:   MethodNone,
			Warnings: []string{"one task: nothing is known about other tasks"},
		}, nil
	}
	return clusterWilson(mean, effective, len(tasks), level), nil
}

// clusterWilson pays for the estimated variance by Student's quantile.
func clusterWilson(mean, effective float64, groups int, level float64) Interval {
	z := normalQuantile(level)
	ratio := z / studentQuantile(level, float64(groups-1))
	interval := wilsonWith(mean, effective*ratio*ratio, z, level)
	interval.SE = math.Sqrt(mean * (1 - mean) / effective)
	interval.Method = MethodClusterWilson
	return interval
}

// TaskMean is the mean over tasks of values between 0 and 1, one value per task: pass@k, score@k,
// mean scores.
//
// Formula: "cluster-wilson" of [PassRate] with one value per task: n_eff = p(1−p)/(s²/G), at least
// G.
//
// Use it for suite-level numbers; the tasks are taken as a sample of the tasks one cares about.
// Coverage is at least 94 % from 20 tasks on where the mean lies between 20 % and 80 %, and from 50
// tasks on between 10 % and 90 %.
//
// Do not use it for values outside [0, 1]: [BootstrapMean].
func TaskMean(values []float64, level float64) (Interval, error) {
	if err := checkSample(values, level); err != nil {
		return Interval{}, err
	}
	if err := checkUnit("value of a task", values...); err != nil {
		return Interval{}, err
	}
	mean, variance := moments(values)
	groups := float64(len(values))
	if len(values) == 1 {
		return Interval{
			Est:      mean,
			Lo:       0,
			Hi:       1,
			Level:    level,
			Method:   MethodNone,
			Warnings: []string{"one task: nothing is known about other tasks"},
		}, nil
	}
	effective := groups
	if variance > 0 && mean > 0 && mean < 1 {
		effective = math.Max(groups, mean*(1-mean)/(variance/groups))
	}
	return clusterWilson(clampUnit(mean), effective, len(values), level), nil
}

func checkSample(values []float64, level float64) error {
	if len(values) == 0 {
		return ErrNoData
	}
	if err := checkFinite("value", values...); err != nil {
		return err
	}
	return checkOpenUnit("level", level)
}

func checkClusters(clusters [][]float64) error {
	if len(clusters) == 0 {
		return ErrNoData
	}
	for i, cluster := range clusters {
		if len(cluster) == 0 {
			return fmt.Errorf("cluster %d: %w", i+1, ErrNoData)
		}
		if err := checkFinite("value", cluster...); err != nil {
			return fmt.Errorf("cluster %d: %w", i+1, err)
		}
	}
	return nil
}
