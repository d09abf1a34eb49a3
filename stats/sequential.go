package stats

import (
	"cmp"
	"fmt"
	"math"
)

// Decided reports whether the evidence of a sequential comparison reaches 1/alpha on enough tasks
// for a claim, so that an experiment may be stopped.
func (c Comparison) Decided(alpha float64) bool {
	return c.EValue != nil && *c.EValue >= 1/alpha && c.Tasks >= MinClaimTasks
}

// CompareSequential measures the difference of two arms from the tasks so far, in the order in
// which they were planned; it may be called after every task.
//
// Formula: one binary run per arm and task: [DiscordantEValue] with a confidence sequence;
// otherwise bets on the per-task differences, with theirs. P = min(1, 1/largest E so far). MDE is
// that of a single look, but at least half the width of the interval.
//
// Use it to stop an experiment as soon as it is decided: claims hold although one looks after every
// task.
//
// Do not use it for outcomes outside [0, 1], for tasks in an order that depends on their results,
// or for clusters of more than one task (an error).
func CompareSequential(pairs []Pair, config CompareConfig) (Comparison, error) {
	comparison, sample, err := measureSequential(pairs, config)
	if err != nil {
		return Comparison{}, err
	}
	comparison.MDE = sample.detectable(comparison, config)
	// An experiment that may be looked at all the time finds less than one look at the end.
	if interval := comparison.Interval; interval != nil {
		comparison.MDE = math.Max(comparison.MDE, interval.Width()/2)
	}
	return comparison, nil
}

// LookSequential is [CompareSequential] without MDE, which takes a simulation to compute.
//
// Formula: as in [CompareSequential].
//
// Use it for a rule that looks after every task and needs the evidence only.
//
// Do not use it for what people read: they want to know which difference could have been found. The
// limits of [CompareSequential] apply.
func LookSequential(pairs []Pair, config CompareConfig) (Comparison, error) {
	comparison, _, err := measureSequential(pairs, config)
	return comparison, err
}

func measureSequential(pairs []Pair, config CompareConfig) (Comparison, *pairedSample, error) {
	config.Level = cmp.Or(config.Level, DefaultLevel)
	if err := checkOpenUnit("level", config.Level); err != nil {
		return Comparison{}, nil, err
	}
	sample, err := newPairedSample(pairs, false)
	if err != nil {
		return Comparison{}, nil, err
	}
	if !sample.bounded {
		return Comparison{}, nil, fmt.Errorf("a sequential comparison needs outcomes between 0 and 1")
	}
	if sample.isClustered() {
		return Comparison{}, nil, fmt.Errorf(
			"a sequential comparison needs independent tasks, but some share a cluster",
		)
	}
	comparison := sample.describe()
	comparison.Method = MethodEProcess
	bounded := sample.addTwo(config.Level)
	comparison.boundedInterval = &bounded
	wide := bounded.hull(sample.gainsAndLosses(config.Level))
	comparison.marginInterval = &wide
	if sample.single {
		err = sample.sequentialDiscordant(&comparison, config.Level)
	} else {
		err = sample.sequentialBounded(&comparison, config.Level)
	}
	if err != nil {
		return Comparison{}, nil, err
	}
	return comparison, sample, nil
}

func (s *pairedSample) sequentialDiscordant(comparison *Comparison, level float64) error {
	var process discordantProcess
	var order []bool
	for _, difference := range s.differences {
		process.Add(difference > 0, difference < 0)
		if difference != 0 {
			order = append(order, difference > 0)
		}
	}
	interval, err := discordantConfidenceSequence(order, len(s.differences), level)
	if err != nil {
		return err
	}
	comparison.Reason = "sequential; one run per arm and task, every outcome 0 or 1"
	_, comparison.SE = bonettPrice(float64(comparison.Wins), float64(comparison.Losses), float64(comparison.Tasks))
	comparison.setEvidence(process.Highest(), interval)
	return nil
}

func (s *pairedSample) sequentialBounded(comparison *Comparison, level float64) error {
	var process boundedProcess
	for _, difference := range s.differences {
		if err := process.Add(clamp(difference, -1, 1)); err != nil {
			return err
		}
	}
	interval, err := boundedConfidenceSequence(s.differences, level)
	if err != nil {
		return err
	}
	comparison.Reason = "sequential; per-task differences between -1 and 1"
	comparison.SE = cmp.Or(interval.SE, comparison.boundedInterval.SE)
	comparison.setEvidence(process.Highest(), interval)
	return nil
}

func (c *Comparison) setEvidence(highest float64, interval Interval) {
	c.EValue = &highest
	c.P = math.Min(1, 1/highest)
	c.Interval = &interval
}

// LooksFactor is what the p-value of an experiment is multiplied by that was looked at several
// times, each time with the choice to continue.
//
// Formula: looks². The number of looks itself is not enough: their false claims add up to α·Σ1/i,
// which forty looks make 4.3·α, and at 40 tasks 6% of experiments with equal arms claimed
// something. With squares it is at most 1.6·α, and because looks resemble each other and tests are
// discrete, below α in simulations of 12 and of 40 tasks.
//
// Use it for an experiment that grew.
//
// Do not use it to plan looks: [CompareSequential] costs less.
func LooksFactor(looks int) int {
	looks = max(1, looks)
	return looks * looks
}

// atLooks is by how much less a p-value counts after some looks, chosen among some comparisons.
func atLooks(looks, among int) float64 { return float64(LooksFactor(looks) * max(1, among)) }
