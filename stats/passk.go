package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrKExceedsN is the answer to "best of k" when fewer than k runs exist. Its text is part of the
// report format.
var ErrKExceedsN = errors.New("k > n")

// PassAtK returns the unbiased estimate of the chance that at least one of k runs of a task passes,
// from n runs of which c passed.
//
// Formula: 1 − C(n−c, k)/C(n, k), which is 1 when n − c < k.
//
// Use it with n well above k; with k > n/2 it takes only a few values and saturates.
//
// Do not use it with n < k: the error is [ErrKExceedsN]. Never use 1 − (1 − c/n)^k instead, which
// is biased downwards.
func PassAtK(n, c, k int) (float64, error) {
	if err := checkK(n, c, k); err != nil {
		return 0, err
	}
	return 1 - allDrawnFrom(n, n-c, k), nil
}

// PassHatK (pass^k) is the unbiased estimate of the chance that all of k runs of a task pass, from
// n runs of which c passed.
//
// Formula: C(c, k)/C(n, k).
//
// Use it where reliability matters more than the best try.
//
// Do not use it with n < k: the error is [ErrKExceedsN].
func PassHatK(n, c, k int) (float64, error) {
	if err := checkK(n, c, k); err != nil {
		return 0, err
	}
	return allDrawnFrom(n, c, k), nil
}

// allDrawnFrom returns C(m, k)/C(n, k): the chance that k draws without replacement from n all come
// from a subset of m.
func allDrawnFrom(n, m, k int) float64 {
	if m < k {
		return 0
	}
	share := 1.0
	for i := range k {
		share *= float64(m-i) / float64(n-i)
	}
	return share
}

// ScoreAtK returns the expected best score of k runs drawn without replacement from the scores
// given.
//
// Formula: Σ_{i=k..n} s_(i)·C(i−1, k−1)/C(n, k) over the scores sorted ascending.
//
// Use it for graded tasks; on scores of 0 and 1 it equals [PassAtK].
//
// Do not use it with fewer than k scores ([ErrKExceedsN]), nor mix scored and unscored runs of a
// task.
func ScoreAtK(scores []float64, k int) (float64, error) {
	if err := checkFinite("score", scores...); err != nil {
		return 0, err
	}
	n := len(scores)
	if err := checkK(n, 0, k); err != nil {
		return 0, err
	}
	sorted := slices.Sorted(slices.Values(scores))
	weight := float64(k) / float64(n)
	expected := 0.0
	for i := n; i >= k; i-- {
		expected += sorted[i-1] * weight
		if i > 1 {
			weight *= float64(i-k) / float64(i-1)
		}
	}
	return expected, nil
}

func checkK(n, c, k int) error {
	if k < 1 {
		return fmt.Errorf("k must be at least 1, not %d", k)
	}
	if err := checkCount("c", c, "n", n); err != nil {
		return err
	}
	if k > n {
		return fmt.Errorf("%w: k = %d but there are only n = %d runs", ErrKExceedsN, k, n)
	}
	return nil
}

// Tally is the outcome of the runs of one task: N runs, C of them passed.
type Tally struct {
	N int `json:"n"`
	C int `json:"c"`
}

// PassAtKInterval returns the interval for the true pass@k of one single task.
//
// Formula: pass@k is 1 − (1 − p)^k in the task's true pass rate p and grows with it, so the limits
// are those of [Wilson] for p put through it; the estimate is [PassAtK], and the limits are widened
// to include it.
//
// Use it for one task whose runs are independent. Coverage is that of [Wilson] or a little more.
//
// Do not use it for a suite: [OverTasks].
func PassAtKInterval(n, c, k int, level float64) (Interval, error) {
	est, err := PassAtK(n, c, k)
	if err != nil {
		return Interval{}, err
	}
	return powerInterval(n, c, est, level, func(p float64) float64 { return 1 - math.Pow(1-p, float64(k)) })
}

// PassHatKInterval returns the interval for the true pass^k of one single task.
//
// Formula: the limits of [Wilson] for the pass rate p, put through p^k; the estimate is [PassHatK],
// and the limits are widened to include it.
//
// Use it for one task whose runs are independent. Coverage is that of [Wilson] or a little more.
//
// Do not use it for a suite: [OverTasks].
func PassHatKInterval(n, c, k int, level float64) (Interval, error) {
	est, err := PassHatK(n, c, k)
	if err != nil {
		return Interval{}, err
	}
	return powerInterval(n, c, est, level, func(p float64) float64 { return math.Pow(p, float64(k)) })
}

func powerInterval(n, c int, est, level float64, transform func(float64) float64) (Interval, error) {
	rate, err := Wilson(c, n, level)
	if err != nil {
		return Interval{}, err
	}
	interval := Interval{
		Est:    est,
		Lo:     transform(rate.Lo),
		Hi:     transform(rate.Hi),
		Level:  level,
		Method: MethodWilson,
	}
	return interval.cutTo(0), nil
}

// AtK is a suite-level pass@k, pass^k or score@k. Tasks with fewer than k runs cannot be estimated;
// they are counted, not guessed.
type AtK struct {
	K int
	// Interval is meaningless when no task had k runs.
	Interval Interval
	// Tasks were estimated, TooFew had fewer than K runs.
	Tasks, TooFew int
	Warnings      []string
}

// Defined reports whether any task had enough runs.
func (a AtK) Defined() bool { return a.Tasks > 0 }

// MarshalJSON gives an object with the estimate, or {"error":"k > n"} when no task had enough runs.
func (a AtK) MarshalJSON() ([]byte, error) {
	if !a.Defined() {
		// Written by hand because json.Marshal would escape the ">" that readers look for.
		return []byte(`{"error":"` + ErrKExceedsN.Error() + `"}`), nil
	}
	return json.Marshal(struct {
		K      int     `json:"k"`
		Est    float64 `json:"est"`
		Lo     float64 `json:"lo"`
		Hi     float64 `json:"hi"`
		Method string  `json:"method"`
		Tasks  int     `json:"tasks"`
		TooFew int     `json:"tooFew"`
		// Warnings come last because they are rarely there.
		Warnings []string `json:"warnings,omitempty"`
	}{a.K, a.Interval.Est, a.Interval.Lo, a.Interval.Hi, a.Interval.Method, a.Tasks, a.TooFew, a.Warnings})
}

// OverTasks averages a per-task estimate at k (PassAtK or PassHatK) over the tasks of a suite.
//
// Formula: mean over the tasks with n ≥ k, with the interval of [TaskMean].
//
// Use it for the headline of a suite; it warns when k is more than half the runs of a task, where
// the estimate saturates.
//
// Do not use it when many tasks have fewer than k runs: those tasks are left out, and the rest may
// be a biased choice.
func OverTasks(tasks []Tally, k int, level float64, estimate func(n, c, k int) (float64, error)) (AtK, error) {
	return atK(tasks, k, level, func(task Tally) (float64, int, error) {
		value, err := estimate(task.N, task.C, k)
		return value, task.N, err
	})
}

// ScoreAtKOverTasks averages the expected best of k over the tasks of a suite; each element holds
// the scores of one task.
//
// Formula: mean of [ScoreAtK] over the tasks with at least k scores, with the interval of
// [TaskMean].
//
// Use it for graded suites with scores between 0 and 1.
//
// Do not use it for scores on another scale: divide by their maximum first.
func ScoreAtKOverTasks(tasks [][]float64, k int, level float64) (AtK, error) {
	return atK(tasks, k, level, func(scores []float64) (float64, int, error) {
		if err := checkUnit("score", scores...); err != nil {
			return 0, 0, err
		}
		value, err := ScoreAtK(scores, k)
		return clamp(value, 0, 1), len(scores), err
	})
}

// atK averages an estimate over tasks; it comes with the number of the task's runs.
func atK[T any](tasks []T, k int, level float64, estimate func(T) (value float64, runs int, err error)) (AtK, error) {
	if len(tasks) == 0 {
		return AtK{}, ErrNoData
	}
	values := make([]float64, 0, len(tasks))
	summary := AtK{K: k}
	crowded := 0
	for i, task := range tasks {
		value, runs, err := estimate(task)
		if errors.Is(err, ErrKExceedsN) {
			summary.TooFew++
			continue
		}
		if err != nil {
			return AtK{}, fmt.Errorf("task %d: %w", i+1, err)
		}
		if 2*k > runs && k > 1 {
			crowded++
		}
		values = append(values, value)
	}
	if summary.TooFew > 0 {
		summary.Warnings = append(summary.Warnings,
			fmt.Sprintf("%d task(s) with fewer than %d runs left out", summary.TooFew, summary.K))
	}
	if crowded > 0 {
		summary.Warnings = append(summary.Warnings,
			fmt.Sprintf("k = %d is more than half the runs of %d task(s): the estimate saturates", summary.K, crowded))
	}
	summary.Tasks = len(values)
	if len(values) == 0 {
		return summary, nil
	}
	interval, err := TaskMean(values, level)
	if err != nil {
		return AtK{}, err
	}
	summary.Interval = interval
	return summary, nil
}
