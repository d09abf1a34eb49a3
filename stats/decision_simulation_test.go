package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// experimentsPerDesign A/A experiments make the Monte Carlo error of a 5% rate half a point.
const experimentsPerDesign = 2000

func isClaim(claim Claim) bool { return claim == Improved || claim == Regressed }

func TestTwoEqualArmsRarelyGetAClaim(t *testing.T) {
	for _, design := range []suite{
		{tasks: 12, runs: 3, rate: .5, correlation: .5},
		{tasks: 30, runs: 1, rate: .6, correlation: .5},
		{tasks: 30, runs: 5, rate: .8, correlation: .3},
		{tasks: 40, runs: 3, rate: .5, correlation: .3, perCluster: 4},
		{tasks: 40, runs: 2, rate: .3, correlation: .5, strata: 4},
	} {
		t.Run(fmt.Sprintf("%+v", design), func(t *testing.T) {
			t.Parallel()
			random := seededFor(t)
			experiments, claims := simulations(experimentsPerDesign), 0
			for range experiments {
				comparison := must[Comparison](t)(measured(design.draw(random),
					CompareConfig{Replicates: 2000, Seed: random.Uint64()}))
				if isClaim(must[Decision](t)(Decide(comparison, DecideConfig{})).Claim) {
					claims++
				}
			}
			wantRareClaims(t, claims, experiments)
		})
	}
}

func TestEqualCostsRarelyGetAClaim(t *testing.T) {
	random := seededFor(t)
	experiments, claims := simulations(experimentsPerDesign), 0
	for range experiments {
		pairs := make([]Pair, 15)
		for i := range pairs {
			size := random.ExpFloat64() + .1
			pairs[i] = Pair{
				Candidate: []float64{size * (.5 + random.ExpFloat64())},
				Baseline:  []float64{size * (.5 + random.ExpFloat64())},
			}
		}
		comparison := must[Comparison](t)(measuredRatio(pairs, CompareConfig{Seed: random.Uint64()}))
		if isClaim(must[Decision](t)(Decide(comparison, DecideConfig{Measure: Measure{LowerIsBetter: true}})).Claim) {
			claims++
		}
	}
	wantRareClaims(t, claims, experiments)
}

func TestPeekingAfterEveryTaskIsSafeWithTheEProcess(t *testing.T) {
	for _, runs := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d runs", runs), func(t *testing.T) {
			t.Parallel()
			design := suite{tasks: 100, runs: runs, rate: .5, correlation: .4}
			random := seededFor(t)
			experiments, claims := simulations(experimentsPerDesign), 0
			for range experiments {
				if everClaims(t, design.draw(random)) {
					claims++
				}
			}
			wantRareClaims(t, claims, experiments)
		})
	}
}

// everClaims looks after every task. The claim rule is asked only where the evidence changed enough
// to matter, because it can only say yes when the process has stopped.
func everClaims(t *testing.T, pairs []Pair) bool {
	var discordant discordantProcess
	var bounded boundedProcess
	for i, pair := range pairs {
		candidate, _ := moments(pair.Candidate)
		baseline, _ := moments(pair.Baseline)
		discordant.Add(candidate > baseline, baseline > candidate)
		if err := bounded.Add(clamp(candidate-baseline, -1, 1)); err != nil {
			t.Fatal(err)
		}
		stopped := bounded.Highest() >= 20
		if len(pair.Candidate) == 1 {
			stopped = discordant.Highest() >= 20
		}
		if !stopped {
			continue
		}
		comparison := must[Comparison](t)(measuredSequential(pairs[:i+1]))
		if isClaim(must[Decision](t)(Decide(comparison, DecideConfig{})).Claim) {
			return true
		}
	}
	return false
}

func TestPeekingWithAFixedSampleTestIsNotSafe(t *testing.T) {
	// The reason for the e-process: the exact McNemar test, looked at after every task, errs far
	// more often than 5%.
	random := seededFor(t)
	experiments, claims := simulations(experimentsPerDesign), 0
	for range experiments {
		wins, losses := 0, 0
		for range 100 {
			switch random.IntN(4) {
			case 0:
				wins++
			case 1:
				losses++
			default:
				continue
			}
			if must[McNemarResult](t)(McNemar(wins, losses)).P < .05 {
				claims++
				break
			}
		}
	}
	if rate := float64(claims) / float64(experiments); rate < .09 {
		t.Errorf("peeking at McNemar erred in %.3f of the experiments, expected about 0.13", rate)
	}
}

func TestARealImprovementIsFound(t *testing.T) {
	design := suite{tasks: 60, runs: 3, rate: .5, lift: .4, correlation: .4}
	fixed, sequential := 0, 0
	random := seededFor(t)
	experiments := simulations(400)
	for range experiments {
		pairs := design.draw(random)
		decision := must[Decision](t)(Decide(must[Comparison](t)(measured(pairs, CompareConfig{Replicates: 1000})),
			DecideConfig{}))
		if decision.Claim == Regressed {
			t.Errorf("an improvement was called a regression: %s", decision.Sentence)
		}
		if decision.Claim == Improved {
			fixed++
		}
		if must[Comparison](t)(measuredSequential(pairs)).P <= .05 {
			sequential++
		}
	}
	if share := float64(fixed) / float64(experiments); share < .9 {
		t.Errorf("an improvement of 20 points was found in %.2f of the experiments with 60 tasks", share)
	}
	if share := float64(sequential) / float64(experiments); share < .6 {
		t.Errorf("the e-process found an improvement of 20 points in %.2f of the experiments with 60 tasks", share)
	}
}

func TestEquivalenceIsRarelyClaimedForADifferenceAtTheMargin(t *testing.T) {
	for _, design := range []suite{
		{tasks: 200, runs: 3, rate: .5, lift: .2, correlation: .4},
		// Nearly all tasks tie here: the trap of taking silence for sameness.
		{tasks: 100, runs: 1, rate: .9, lift: .5, correlation: .5},
	} {
		t.Run(fmt.Sprintf("%+v", design), func(t *testing.T) {
			t.Parallel()
			random := seededFor(t)
			experiments, claims := simulations(1000), 0
			for range experiments {
				pairs := shiftedDown(random, design)
				comparison := must[Comparison](t)(measured(pairs, CompareConfig{Replicates: 500}))
				if must[Decision](t)(Decide(comparison, DecideConfig{Margin: design.truth()})).Claim == Equivalent {
					claims++
				}
			}
			wantRareClaims(t, claims, experiments)
		})
	}
}

// shiftedDown swaps the arms, so that the candidate is worse by exactly the margin.
func shiftedDown(random *rand.Rand, design suite) []Pair {
	pairs := design.draw(random)
	for i := range pairs {
		pairs[i].Candidate, pairs[i].Baseline = pairs[i].Baseline, pairs[i].Candidate
	}
	return pairs
}

// All pairs of five arms are ten chances of a false claim; taken one by one, 18 of 100 experiments
// have one.
func TestFiveEqualArmsRarelyGetAClaim(t *testing.T) {
	random := seededFor(t)
	experiments, claims := simulations(400), 0
	for range experiments {
		var arms [5][]Pair // each arm's runs stand in Candidate
		for range 20 {
			rate := taskRate(random, .5, .4)
			for a := range arms {
				arms[a] = append(arms[a], Pair{Candidate: runsOf(random, rate, 3)})
			}
		}
		var comparisons []Comparison
		for a := range arms {
			for b := range a {
				pairs := make([]Pair, len(arms[a]))
				for i := range pairs {
					pairs[i] = Pair{Candidate: arms[a][i].Candidate, Baseline: arms[b][i].Candidate}
				}
				comparisons = append(comparisons,
					must[Comparison](t)(measured(pairs, CompareConfig{Replicates: 2000, Seed: random.Uint64()})))
			}
		}
		decisions := must[[]Decision](t)(DecideFamily(comparisons, make([]DecideConfig, len(comparisons))))
		for _, decision := range decisions {
			if isClaim(decision.Claim) {
				claims++
				break
			}
		}
	}
	wantRareClaims(t, claims, experiments)
}

// Whoever adds a run to every task until equal arms differ, and looks forty times, rarely gets a
// claim.
func TestGrowingEqualArmsRarelyMakesAClaim(t *testing.T) {
	for _, tasks := range []int{12, 40} {
		t.Run(fmt.Sprint(tasks), func(t *testing.T) {
			t.Parallel()
			random := seededFor(t)
			experiments, claims := simulations(300), 0
			for range experiments {
				if look := firstClaim(t, random, tasks, 40); look > 0 {
					claims++
				}
			}
			wantRareClaims(t, claims, experiments)
		})
	}
}

// firstClaim returns the look at which a growing experiment with equal arms claims something; 0 is
// none.
func firstClaim(t *testing.T, random *rand.Rand, tasks, looks int) int {
	pairs, rates := make([]Pair, tasks), make([]float64, tasks)
	for i := range rates {
		rates[i] = .1 + .8*random.Float64()
	}
	for look := 1; look <= looks; look++ {
		var sum, squares float64
		for i := range pairs {
			pairs[i].Candidate = append(pairs[i].Candidate, runsOf(random, rates[i], 1)...)
			pairs[i].Baseline = append(pairs[i].Baseline, runsOf(random, rates[i], 1)...)
			difference := Mean(pairs[i].Candidate) - Mean(pairs[i].Baseline)
			sum, squares = sum+difference, squares+difference*difference
		}
		if sum*sum < 3*squares { // p is far above any level
			continue
		}
		comparison := must[Comparison](t)(measured(pairs, CompareConfig{Replicates: 2000, Seed: random.Uint64()}))
		if isClaim(must[Decision](t)(Decide(comparison, DecideConfig{Looks: look})).Claim) {
			return look
		}
	}
	return 0
}

// marginTask draws a task on which the candidate is worse by delta in the mean over tasks, which
// differ.
func marginTask(random *rand.Rand, kind string, delta float64, runs int) Pair {
	candidate, baseline := 1.0, 1.0
	switch u := random.Float64(); kind {
	case "rare losses at the ceiling": // an arm that nearly always passes hides them best
		if u < delta {
			candidate = 0
		}
	case "a little worse everywhere":
		baseline = math.Pow(math.Sin(math.Pi/2*u), 2) // mean ½, most near 0 or 1
		candidate = baseline * (1 - 2*delta)
	default: // some won, more lost
		switch {
		case u < .1:
			baseline = 0
		case u < .2+delta:
			candidate = 0
		case u < .6:
			candidate, baseline = 0, 0
		}
	}
	return Pair{Candidate: runsOf(random, candidate, runs), Baseline: runsOf(random, baseline, runs)}
}

// A candidate that is worse by exactly the margin passes for non-inferior, or for equivalent, as
// seldom as the level says, however tasks differ.
func TestNonInferiorityIsRarelyShownAtTheMargin(t *testing.T) {
	for _, tasks := range []int{20, 50, 100, 200} {
		for _, runs := range []int{1, 3} {
			for _, kind := range []string{"rare losses at the ceiling", "a little worse everywhere", "won and lost"} {
				t.Run(fmt.Sprintf("%d tasks, %d runs, %s", tasks, runs, kind), func(t *testing.T) {
					t.Parallel()
					margin := .1
					if tasks >= 100 {
						margin = .05
					}
					random := seededFor(t)
					experiments, passes := simulations(400), 0
					for range experiments {
						pairs := make([]Pair, tasks)
						for i := range pairs {
							pairs[i] = marginTask(random, kind, margin, runs)
						}
						comparison := must[Comparison](t)(measured(pairs, CompareConfig{Replicates: 100}))
						config := DecideConfig{NonInferior: margin, Margin: margin}
						decision := must[Decision](t)(Decide(comparison, config))
						if decision.NonInferior.Shown || decision.Claim == Equivalent {
							passes++
						}
					}
					share := float64(passes) / float64(experiments)
					if limit := .025 + 3*monteCarloError(.025, experiments); share > limit {
						t.Errorf("%.3f of %d experiments pass, want at most %.3f", share, experiments, limit)
					}
				})
			}
		}
	}
}
