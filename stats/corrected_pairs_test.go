package stats

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// judgedPairs replaces the outcomes of a suite by the verdicts of a judge with the given TPR and
// TNR on each arm.
func judgedPairs(random *rand.Rand, pairs []Pair, candidate, baseline [2]float64) []Pair {
	verdicts := func(outcomes []float64, judge [2]float64) {
		for i, outcome := range outcomes {
			if outcome == 1 {
				outcomes[i] = coin(random, judge[0])
			} else {
				outcomes[i] = coin(random, 1-judge[1])
			}
		}
	}
	for _, pair := range pairs {
		verdicts(pair.Candidate, candidate)
		verdicts(pair.Baseline, baseline)
	}
	return pairs
}

// few permutations suffice where only the interval is looked at.
var quickly = CompareConfig{Replicates: 100}

func TestCoverageOfCorrectedComparisons(t *testing.T) {
	for _, size := range [][3]int{{20, 3, 20}, {20, 2, 50}, {50, 3, 50}, {30, 1, 20}} {
		for _, truth := range []suite{{rate: .6}, {rate: .4, lift: .3}, {rate: .5, lift: .3, perCluster: 2}} {
			truth.tasks, truth.runs, truth.correlation = size[0], size[1], .4
			if truth.perCluster > 1 {
				truth.tasks *= 2
			}
			t.Run(fmt.Sprintf("common %v rate %g lift %g clusters of %d", size, truth.rate, truth.lift,
				truth.perCluster), func(t *testing.T) {
				t.Parallel()
				judge := [2]float64{.9, .85}
				wantCoverage(t, 500, .94, truth.truth(), func(random *rand.Rand) (Interval, error) {
					pairs := judgedPairs(random, truth.draw(random), judge, judge)
					result, err := compareCorrected(pairs, drawCalibration(random, size[2], judge), quickly)
					if err != nil {
						return Interval{}, err
					}
					return *result.Interval, nil
				})
			})
			t.Run(fmt.Sprintf("per agent %v rate %g lift %g clusters of %d", size, truth.rate, truth.lift,
				truth.perCluster), func(t *testing.T) {
				t.Parallel()
				candidate, baseline := [2]float64{.95, .80}, [2]float64{.85, .90}
				wantCoverage(t, 500, .94, truth.truth(), func(random *rand.Rand) (Interval, error) {
					pairs := judgedPairs(random, truth.draw(random), candidate, baseline)
					result, err := compareCorrectedPerAgent(pairs, drawCalibration(random, size[2], candidate),
						drawCalibration(random, size[2], baseline), quickly)
					if err != nil {
						return Interval{}, err
					}
					return *result.Interval, nil
				})
			})
		}
	}
}

func TestCorrectedComparisonOfSingleRunsIsThePublishedOne(t *testing.T) {
	judge := Calibration{TP: 45, M1: 50, TN: 43, M0: 50}
	var pairs []Pair
	add := func(count int, candidate, baseline float64) {
		for range count {
			pairs = append(pairs, Pair{Candidate: []float64{candidate}, Baseline: []float64{baseline}})
		}
	}
	add(9, 1, 0)
	add(2, 0, 1)
	add(39, 1, 1)
	got := must[Comparison](t)(compareCorrected(pairs, judge, CompareConfig{}))
	wantNear(t, "difference", got.Est, .184211)
	wantLimits(t, "smoothed", *got.Interval, .002092, .366329)
	wantNear(t, "p", got.P, .065430)
	if _, err := compareCorrected(pairs, Calibration{TP: 5, M1: 10, TN: 5, M0: 10}, CompareConfig{}); err == nil {
		t.Error("a coin was taken for a judge")
	}
}

// The judge passes more of one arm's bad work: the verdicts differ although the arms do not, and
// only rates of the judge per arm show it.
func TestACorrectionPerAgentUndoesAKinderJudge(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	kind, strict := [2]float64{.98, .60}, [2]float64{.80, .97}
	truth := suite{tasks: 60, runs: 3, rate: .5, correlation: .3}
	found, corrected := 0, 0
	const experiments = 100
	for range experiments {
		pairs := judgedPairs(random, truth.draw(random), kind, strict)
		a, b := drawCalibration(random, 40, kind), drawCalibration(random, 40, strict)
		verdicts := must[Comparison](t)(measured(pairs, CompareConfig{Replicates: 200}))
		truths := must[Comparison](t)(compareCorrectedPerAgent(pairs, a, b, CompareConfig{Replicates: 200}))
		if verdicts.Interval.Excludes(0) {
			found++
		}
		if truths.Interval.Excludes(0) && truths.P < .05 {
			corrected++
		}
	}
	if found < 90 || corrected > 8 {
		t.Errorf("of %d experiments without a difference %d show one in the verdicts (want nearly all) and %d after "+
			"correction (want about 5)", experiments, found, corrected)
	}
}

// A check fails bad runs of one arm more often than those of the other, and the judge is only asked
// about the rest.
func TestCoverageOfComparisonsWithFacts(t *testing.T) {
	judge, checked := [2]float64{.9, .75}, [2]float64{.8, .3}
	split := func(random *rand.Rand, outcomes []float64, fails float64) (verdicts, facts []float64) {
		for _, outcome := range outcomes {
			switch {
			case outcome == 0 && coin(random, fails) == 1:
				facts = append(facts, 0)
			case outcome == 1:
				verdicts = append(verdicts, coin(random, judge[0]))
			default:
				verdicts = append(verdicts, coin(random, 1-judge[1]))
			}
		}
		return verdicts, facts
	}
	for _, size := range [][3]int{{30, 2, 40}, {60, 1, 40}, {50, 3, 100}} {
		for _, truth := range []suite{{rate: .6}, {rate: .4, lift: .3}} {
			for _, perAgent := range []bool{false, true} {
				truth.tasks, truth.runs, truth.correlation = size[0], size[1], .4
				t.Run(fmt.Sprintf("%v rate %g lift %g per agent %v", size, truth.rate, truth.lift, perAgent),
					func(t *testing.T) {
						t.Parallel()
						wantCoverage(t, 500, .94, truth.truth(), func(random *rand.Rand) (Interval, error) {
							var pairs []JudgedPair
							for _, pair := range truth.draw(random) {
								one := JudgedPair{Pair: pair}
								one.Candidate, one.CandidateFacts = split(random, pair.Candidate, checked[0])
								one.Baseline, one.BaselineFacts = split(random, pair.Baseline, checked[1])
								pairs = append(pairs, one)
							}
							first := drawCalibration(random, size[2], judge)
							second := first
							if perAgent {
								second = drawCalibration(random, size[2], judge)
							}
							result, err := CompareWithFacts(pairs, first, second, perAgent, quickly)
							if err != nil {
								return Interval{}, err
							}
							return *result.Interval, nil
						})
					})
			}
		}
	}
}
