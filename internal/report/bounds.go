package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/stats"
)

// BoundsAtK returns what a number over tasks would be if every run whose outcome is not certain had
// the lowest, or the highest; nil where all are certain. estimate takes the outcomes of every task,
// and grows with each.
func BoundsAtK(outcomes []Outcome, estimate func(tasks [][]float64) (stats.AtK, error)) (*Bounds, error) {
	if unsureOf(outcomes) == 0 {
		return nil, nil
	}
	var found [2]stats.AtK
	for i, fill := range []float64{0, 1} {
		var tasks [][]float64
		for _, task := range PairOutcomes(outcomes, nil, &[2]float64{fill, fill}) {
			tasks = append(tasks, task.Baseline)
		}
		var err error
		if found[i], err = estimate(tasks); err != nil || !found[i].Defined() {
			return nil, err
		}
	}
	return &Bounds{
		Worst: found[0].Interval.Est,
		Best:  found[1].Interval.Est,
		Lo:    found[0].Interval.Lo,
		Hi:    found[1].Interval.Hi,
	}, nil
}

// TalliesOf counts the passes of every task.
func TalliesOf(tasks [][]float64) []stats.Tally {
	tallies := make([]stats.Tally, len(tasks))
	for i, outcomes := range tasks {
		tallies[i] = stats.Tally{N: len(outcomes), C: countPasses(outcomes)}
	}
	return tallies
}

// boundAtK fills in the bounds of everything that is estimated beside the pass rate.
func (g *Group) boundAtK(in Input) error {
	passes, scores := g.Passes(), g.measured(MeasureScore)
	g.BoundsOf = map[string]Bounds{}
	bound := func(name string, outcomes []Outcome, estimate func(tasks [][]float64) (stats.AtK, error)) error {
		bounds, err := BoundsAtK(outcomes, estimate)
		if err != nil || bounds == nil {
			return err
		}
		g.BoundsOf[name] = *bounds
		return nil
	}
	for _, k := range in.K {
		key := strconv.Itoa(k)
		err := bound("pass@"+key, passes, func(tasks [][]float64) (stats.AtK, error) {
			return stats.OverTasks(TalliesOf(tasks), k, in.Level, stats.PassAtK)
		})
		if err == nil && g.AtLeastK != nil {
			err = bound("atLeast@"+key, passes, func(tasks [][]float64) (stats.AtK, error) {
				return atLeast(TalliesOf(tasks), k, in.Level)
			})
		}
		if err == nil && g.MeanScore != nil {
			err = bound("score@"+key, scores, func(tasks [][]float64) (stats.AtK, error) {
				return stats.ScoreAtKOverTasks(tasks, k, in.Level)
			})
		}
		if err != nil {
			return fmt.Errorf("bounds: %w", err)
		}
	}
	if g.MeanScore == nil {
		return nil
	}
	mean, err := boundsOf(scores, in.Level)
	if err == nil && mean != nil {
		g.BoundsOf["score"] = *mean
	}
	return err
}

// boundsLines say what the numbers of a group would be for all outcomes of runs without a certain
// one.
func (g *Group) boundsLines() []string {
	if g.Bounds == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("worst/best case (all missing or retried runs failed/passed): %.1f%% to %.1f%%",
		100*g.Bounds.Worst, 100*g.Bounds.Best)}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(g.BoundsOf)) {
		if bounds := g.BoundsOf[name]; name != "pass@1" { // that is the pass rate
			others = append(others, fmt.Sprintf("%s %.4f to %.4f", name, bounds.Worst, bounds.Best))
		}
	}
	if len(others) > 0 {
		lines = append(lines, "worst/best case of "+strings.Join(others, ", "))
	}
	return lines
}

// BoundedPercent formats a rate with its limits, and with its bounds where it has some.
func BoundedPercent(rate *stats.Interval, bounds *Bounds) string {
	if rate == nil || bounds == nil {
		return percent(rate)
	}
	return fmt.Sprintf("%s, worst/best case %.1f to %.1f", percent(rate), 100*bounds.Worst, 100*bounds.Best)
}
