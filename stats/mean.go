package stats

import (
	"cmp"
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

// clusterMean is the mean over all runs with its cluster-robust standard error, (1/N)·√(Σ_g
// (Σ_{i∈g}(s_i − s̄))²)·√(G/(G−1)) over G clusters and N runs.
func clusterMean(clusters [][]float64) (mean, se float64) {
	mean, count := meanOfAll(clusters)
	var squares float64
	for _, cluster := range clusters {
		var residual float64
		for _, value := range cluster {
			residual += value - mean
		}
		squares += residual * residual
	}
	g := float64(len(clusters))
	return mean, math.Sqrt(squares*g/(g-1)) / float64(count)
}

// EffectiveRuns returns the number of independent runs that would carry as much information about
// the pass rate as these clustered ones.
//
// Formula: n_eff = p(1−p)/Var_cl(p), clamped to [G, N]; G (the number of tasks) when all runs
// agree.
//
// Use it to put clustered runs into a formula for independent ones: the Wilson interval, the
// correction of a judge ([CorrectRate]).
//
// Do not use it for scores other than 0 and 1.
func EffectiveRuns(tasks [][]float64) (float64, error) {
	if err := checkRates(tasks); err != nil {
		return 0, err
	}
	groups := float64(len(tasks))
	if len(tasks) < 2 {
		return groups, nil
	}
	mean, se := clusterMean(tasks)
	_, runs := meanOfAll(tasks)
	if se <= 1e-9 || mean <= 0 || mean >= 1 { // equal rates differ by a rounding error at most
		return groups, nil
	}
	return clamp(mean*(1-mean)/(se*se), groups, float64(runs)), nil
}

func checkRates(tasks [][]float64) error {
	if err := checkClusters(tasks); err != nil {
		return err
	}
	for _, runs := range tasks {
		if err := checkUnit("outcome", runs...); err != nil {
			return err
		}
	}
	return nil
}

// PassRate returns the interval for the pass rate of one arm; each element of tasks holds the
// outcomes (0 to 1) of the runs of one task.
//
// Formula: [Wilson] with the mean over runs and n = number of tasks, whatever the runs per task.
// Runs of one task say nothing about other tasks, and equal rates are not certainty: tasks differ
// at most as much as the flips of a coin do, and that much is allowed for. A single task with
// several runs: [0, 1], named "none".
//
// Use it for every reported rate. Its coverage is at least that of [Wilson] with as many tasks, and
// higher where tasks differ little.
//
// Do not use it to compare two arms by looking whether their intervals overlap: [Compare].
func PassRate(tasks [][]float64, level float64) (Interval, error) {
	if err := cmp.Or(checkOpenUnit("level", level), checkRates(tasks)); err != nil {
		return Interval{}, err
	}
	mean, runs := meanOfAll(tasks)
	if len(tasks) == 1 && runs > 1 {
		return oneTask(mean, level), nil
	}
	return overTasks(mean, float64(len(tasks)), level), nil
}

// meanOfAll returns the mean of the values of all groups, and how many there are.
func meanOfAll(groups [][]float64) (mean float64, n int) {
	for _, group := range groups {
		for _, value := range group {
			mean += value
		}
		n += len(group)
	}
	return mean / float64(n), n
}

// overTasks returns the Wilson interval around a mean of n values between 0 and 1.
func overTasks(mean, n, level float64) Interval {
	return wilsonWith(clamp(mean, 0, 1), n, normalQuantile(level), level)
}

func oneTask(mean, level float64) Interval {
	return Interval{
		Est:      mean,
		Lo:       0,
		Hi:       1,
		Level:    level,
		Method:   MethodNone,
		Warnings: []string{"one task: nothing is known about other tasks"},
	}
}

// TaskMean returns the mean over tasks of values between 0 and 1, one value per task: pass rates,
// pass@k, score@k, mean scores.
//
// Formula: [Wilson] at p = mean and n = number of tasks: no interval is shorter than that of a
// binomial with as many tasks.
//
// Use it for suite-level numbers; the tasks are taken as a sample of the tasks one cares about.
//
// Do not use it for values outside [0, 1]: [Compare]; nor for tasks that share clusters:
// [ClusteredMean].
func TaskMean(values []float64, level float64) (Interval, error) {
	if err := cmp.Or(checkSample(values, level), checkUnit("value of a task", values...)); err != nil {
		return Interval{}, err
	}
	mean := Mean(values)
	if len(values) == 1 {
		return oneTask(mean, level), nil
	}
	return overTasks(mean, float64(len(values)), level), nil
}

// ClusteredMean returns the mean over tasks of values between 0 and 1 where tasks share clusters;
// each element holds the values of the tasks of one cluster.
//
// Formula: [Wilson] at p = mean and n = n_eff·(z/t_{G−1})², named "cluster-wilson"; n_eff of
// [EffectiveRuns] lies between the number of clusters G and the number of tasks.
//
// Use it for rates of tasks that come from a few repositories.
//
// Do not use it with one cluster, which says nothing about others: [0, 1], named "none".
func ClusteredMean(clusters [][]float64, level float64) (Interval, error) {
	if err := checkOpenUnit("level", level); err != nil {
		return Interval{}, err
	}
	effective, err := EffectiveRuns(clusters)
	if err != nil {
		return Interval{}, err
	}
	mean, _ := meanOfAll(clusters)
	mean = clamp(mean, 0, 1)
	if len(clusters) == 1 {
		return oneTask(mean, level), nil
	}
	z := normalQuantile(level)
	ratio := z / studentQuantile(level, float64(len(clusters)-1))
	interval := wilsonWith(mean, effective*ratio*ratio, z, level)
	interval.SE = math.Sqrt(mean * (1 - mean) / effective)
	interval.Method = MethodClusterWilson
	return interval, nil
}

// methodRatio names the interval of RatioOfSums.
const methodRatio = "log-ratio-t"

// RatioOfSums returns the interval for a ratio of two totals over tasks, such as cost per pass;
// each task has a part of both.
//
// Formula: R = Σx/Σy; SE = √(G/(G−1)·Σ(x_i − R·y_i)²)/Σy; R·exp(±t_{G−1}·SE/R) over G tasks.
//
// Use it for prices of outcomes. Coverage is at least 93% from 15 tasks on for costs that spread
// like a lognormal and pass rates of 30% and more.
//
// Do not use it to compare two arms: [CompareRatio].
func RatioOfSums(xs, ys []float64, level float64) (Interval, error) {
	if err := cmp.Or(checkSample(xs, level), checkSample(ys, level)); err != nil {
		return Interval{}, err
	}
	if len(xs) != len(ys) || len(xs) < 2 {
		return Interval{}, fmt.Errorf("values must be as many of both, and at least 2, not %d and %d", len(xs), len(ys))
	}
	var x, y, squares float64
	for i := range xs {
		x, y = x+xs[i], y+ys[i]
	}
	if !(x > 0 && y > 0) {
		return Interval{}, fmt.Errorf("totals must be above 0, not %g and %g", x, y)
	}
	ratio := x / y
	for i := range xs {
		squares += (xs[i] - ratio*ys[i]) * (xs[i] - ratio*ys[i])
	}
	g := float64(len(xs))
	se := math.Sqrt(squares*g/(g-1)) / y
	half := studentQuantile(level, g-1) * se / ratio
	return Interval{
		Est:    ratio,
		Lo:     ratio * math.Exp(-half),
		Hi:     ratio * math.Exp(half),
		SE:     se,
		Level:  level,
		Method: methodRatio,
	}, nil
}

func checkSample(values []float64, level float64) error {
	if len(values) == 0 {
		return ErrNoData
	}
	return cmp.Or(checkFinite("value", values...), checkOpenUnit("level", level))
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
