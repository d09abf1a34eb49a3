package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fit-eval/fit/internal/testenv"
)

// population draws the true pass rates of both arms on one task; strength 0 is no difference.
type population struct {
	name string
	draw func(random *rand.Rand, strength float64) (baseline, candidate float64)
}

var populations = []population{
	{"a lift of differing size", func(random *rand.Rand, strength float64) (float64, float64) {
		rate := taskRate(random, .5, .5)
		return rate, rate + math.Min(1, 2*strength*random.Float64())*(1-rate)
	}},
	{"unrelated rates", func(random *rand.Rand, strength float64) (float64, float64) {
		return taskRate(random, .5-strength/2, .3), taskRate(random, .5+strength/2, .3)
	}},
	{"the same for every task", func(_ *rand.Rand, strength float64) (float64, float64) {
		return .3, .3 + .7*strength
	}},
	{"some tasks become easy", func(random *rand.Rand, strength float64) (float64, float64) {
		rate := taskRate(random, .4, .4)
		if random.Float64() < strength {
			return rate, taskRate(random, .9, .1)
		}
		return rate, rate
	}},
}

// design measures the mean difference of a population and its variances.
func (p population) design(strength float64, runs int) (difference float64, design Design) {
	const tasks = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	squares := 0.0
	design.RunsCandidate, design.RunsBaseline = runs, runs
	for range tasks {
		baseline, candidate := p.draw(random, strength)
		difference += (candidate - baseline) / tasks
		squares += (candidate - baseline) * (candidate - baseline) / tasks
		design.WithinBaseline += baseline * (1 - baseline) / tasks
		design.WithinCandidate += candidate * (1 - candidate) / tasks
	}
	design.Between = math.Max(0, squares-difference*difference)
	design.Alpha, design.Power = DefaultAlpha, DefaultPower
	return difference, design
}

// experiment draws the runs of both arms.
func (p population) experiment(random *rand.Rand, strength float64, tasks, runs int) []Pair {
	pairs := make([]Pair, tasks)
	for i := range pairs {
		baseline, candidate := p.draw(random, strength)
		pairs[i] = Pair{Baseline: runsOf(random, baseline, runs), Candidate: runsOf(random, candidate, runs)}
	}
	return pairs
}

// found is the share of experiments in which the claim rule says improved, by the quick form of the
// rule.
func (p population) found(t *testing.T, strength float64, tasks, runs, experiments int) float64 {
	t.Helper()
	random := seededFor(t)
	rule := newLatticeRule(runs, tasks, DefaultAlpha)
	counts := make([]int, 2*runs+1)
	found := 0
	for range experiments {
		clear(counts)
		for range tasks {
			baseline, candidate := p.draw(random, strength)
			at := runs
			for range runs {
				if random.Float64() < candidate {
					at++
				}
				if random.Float64() < baseline {
					at--
				}
			}
			counts[at]++
		}
		if rule.finds(counts) {
			found++
		}
	}
	return float64(found) / float64(experiments)
}

// announced is the strength at which the difference of the population is the one that is announced
// for its design; ok is false where no difference is.
func (p population) announced(tasks, runs int) (strength float64, ok bool) {
	enough := func(strength float64) bool {
		difference, design := p.design(strength, runs)
		return design.power(difference, tasks) >= DefaultPower
	}
	low, high := 0.01, 0.95
	if !enough(high) {
		return 0, false
	}
	for range 9 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true
}

func powerGrid() (sizes [][2]int) {
	if !fullGrid() {
		return [][2]int{{10, 3}, {12, 3}, {20, 1}, {30, 5}}
	}
	for _, tasks := range []int{10, 12, 15, 20, 30, 40, 60} {
		for runs := 1; runs <= 5; runs++ {
			sizes = append(sizes, [2]int{tasks, runs})
		}
	}
	return sizes
}

// powerExperiments are simulated for each size.
func powerExperiments() int {
	if fullGrid() {
		return 20_000
	}
	return testenv.Size(4000, 2000)
}

func TestAnAnnouncedDifferenceIsFoundInEightOfTenExperiments(t *testing.T) {
	experiments := powerExperiments()
	// Both the share and the announcement are simulated.
	simulated := 2 * math.Hypot(monteCarloError(.8, experiments), monteCarloError(.8, simulatedExperiments))
	for i, size := range powerGrid() {
		for j, population := range populations {
			if !fullGrid() && (i+j)%2 == 1 {
				continue
			}
			tasks, runs := size[0], size[1]
			t.Run(fmt.Sprintf("%s, %d × %d", population.name, tasks, runs), func(t *testing.T) {
				t.Parallel()
				strength, ok := population.announced(tasks, runs)
				if !ok {
					t.Log("no difference of this kind is announced")
					return
				}
				difference, design := population.design(strength, runs)
				wantWithin(t, "announced over true difference",
					must[float64](t)(MinimumDetectableEffect(tasks, design))/difference, 1, .03)
				share := population.found(t, strength, tasks, runs, experiments)
				t.Logf("%.1f points are found in %.1f of 100", 100*difference, 100*share)
				wantWithin(t, "share that finds it", share, .8, .03+simulated)
			})
		}
	}
}

// A report knows the variance only from its own experiment.
func TestADifferenceAnnouncedByAReportIsFoundInEightOfTenExperiments(t *testing.T) {
	reports := testenv.Size(60, 20)
	if fullGrid() {
		reports = 300
	}
	for i, size := range powerGrid() {
		population := populations[i%len(populations)]
		tasks, runs := size[0], size[1]
		t.Run(fmt.Sprintf("%s, %d × %d", population.name, tasks, runs), func(t *testing.T) {
			t.Parallel()
			strength, ok := population.announced(tasks, runs)
			if !ok {
				return
			}
			// How often differences of several sizes are found, to be read off for each report.
			var sizes, shares []float64
			for _, factor := range []float64{.4, .6, .75, .9, 1, 1.1, 1.25, 1.5, 1.8} {
				if at := factor * strength; at < 1 {
					size, _ := population.design(at, runs)
					sizes = append(sizes, size)
					shares = append(shares, population.found(t, at, tasks, runs, powerExperiments()))
				}
			}
			random := seededFor(t)
			var found []float64
			for range reports {
				comparison := must[Comparison](t)(Compare(population.experiment(random, strength, tasks, runs),
					CompareConfig{}))
				found = append(found, interpolate(sizes, shares, comparison.MDE))
			}
			share, variance := moments(found)
			t.Logf("announced by %d reports: found in %.1f of 100", len(found), 100*share)
			simulated := math.Hypot(monteCarloError(.8, powerExperiments()), math.Sqrt(variance/float64(len(found))))
			wantWithin(t, "share that finds what reports announce", share, .8, .03+2*simulated)
		})
	}
}

// interpolate reads a share off a curve whose probits are joined by straight lines. The last line
// continues to differences that the population cannot have.
func interpolate(sizes, shares []float64, size float64) float64 {
	probit := func(i int) float64 { return distuv.UnitNormal.Quantile(clamp(shares[i], .0001, .9999)) }
	i := 1
	for i < len(sizes)-1 && size > sizes[i] {
		i++
	}
	part := (size - sizes[i-1]) / (sizes[i] - sizes[i-1])
	return distuv.UnitNormal.CDF(probit(i-1) + part*(probit(i)-probit(i-1)))
}

// The simulation of power has a rule of its own for speed; it must be the one of Compare and
// Decide.
func TestTheRuleOfThePowerSimulationIsTheClaimRule(t *testing.T) {
	random := seededFor(t)
	differing, claims := 0, 0
	for range 600 {
		tasks, runs := 10+random.IntN(30), 1+random.IntN(5)
		pairs := populations[random.IntN(len(populations))].experiment(random, .2+.6*random.Float64(), tasks, runs)
		comparison := must[Comparison](t)(measured(pairs, CompareConfig{Seed: 1}))
		claimed := must[Decision](t)(Decide(comparison, DecideConfig{})).Claim == Improved
		counts := make([]int, 2*runs+1)
		for _, pair := range pairs {
			candidate, _ := moments(pair.Candidate)
			baseline, _ := moments(pair.Baseline)
			counts[runs+int(math.Round(float64(runs)*(candidate-baseline)))]++
		}
		if claimed {
			claims++
		}
		if newLatticeRule(runs, tasks, DefaultAlpha).finds(counts) != claimed {
			differing++ // a random sign pattern more or less, at the threshold
		}
	}
	if differing > 6 || claims < 100 || claims > 500 {
		t.Errorf("the rules differ in %d of 600 experiments, %d of which claim an improvement", differing, claims)
	}
}

func TestPlanningTakesLessThanASecond(t *testing.T) {
	testenv.Measurement(t, "bench-stats")
	design := Design{Between: .1, WithinCandidate: .12, WithinBaseline: .12, RunsCandidate: 5, RunsBaseline: 5}
	started := processorTime(t)
	must[float64](t)(MinimumDetectableEffect(60, design))
	must[float64](t)(TasksNeeded(.1, design))
	must[Plan](t)(CostOfDecision(.1, MinClaimTasks, 0, design, Prices{PerRun: 1}))
	must[Plan](t)(Allocate(500, 0, design, Prices{PerRun: 1}))
	if used := processorTime(t) - started; used > time.Second {
		t.Errorf("planning took %v of CPU time", used)
	}
}

// processorTime does not depend on what else the machine does.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
