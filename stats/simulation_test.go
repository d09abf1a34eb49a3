package stats

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
	"gonum.org/v1/gonum/stat/distuv"
)

// fullGrid is set by `make bench-stats`; without it the simulations take seconds.
func fullGrid() bool { return os.Getenv("FIT_STATS_GRID") == "full" }

// simulations returns how often to repeat an experiment: ten times the given number for the full
// grid, and half of it in the quick run.
func simulations(quick int) int {
	if fullGrid() {
		return 10 * quick
	}
	return max(200, testenv.Size(quick/2, quick/10))
}

// seededFor gives every cell of a grid a random stream of its own that does not depend on the order
// of the tests.
func seededFor(t testing.TB) *rand.Rand {
	t.Helper()
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(name.Sum64(), 20260101))
}

// monteCarloError is the standard error of a share p seen in n repetitions.
func monteCarloError(p float64, n int) float64 { return math.Sqrt(p * (1 - p) / float64(n)) }

// wantCoverage repeats an experiment whose truth is known and fails when the interval misses it
// more often than allowed, beyond three Monte Carlo standard errors.
func wantCoverage(t *testing.T, quick int, floor, truth float64, experiment func(random *rand.Rand) (Interval, error)) {
	t.Helper()
	random := seededFor(t)
	repetitions := simulations(quick)
	covered := 0
	for range repetitions {
		interval, err := experiment(random)
		if err != nil {
			t.Fatal(err)
		}
		if interval.Contains(truth) {
			covered++
		}
	}
	coverage := float64(covered) / float64(repetitions)
	slack := 3 * monteCarloError(floor, repetitions)
	if fullGrid() {
		t.Logf("coverage %.4f", coverage)
	}
	if coverage < floor-slack {
		t.Errorf("coverage %.4f of %d repetitions, want at least %.3f - %.3f", coverage, repetitions, floor, slack)
	}
}

// wantRareClaims fails when the share of false claims, minus three Monte Carlo standard errors,
// exceeds 5%.
func wantRareClaims(t *testing.T, claims, experiments int) {
	t.Helper()
	rate := float64(claims) / float64(experiments)
	t.Logf("%d false claims in %d experiments (%.2f%%)", claims, experiments, 100*rate)
	if rate-3*monteCarloError(rate, experiments) > 0.05 {
		t.Errorf("%.2f%% of the experiments made a false claim, want at most 5%%", 100*rate)
	}
}

// taskRate draws the true pass rate of a task; correlation is that of two runs of it.
func taskRate(random *rand.Rand, mean, correlation float64) float64 {
	if correlation == 0 {
		return mean
	}
	concentration := 1/correlation - 1
	return distuv.Beta{Alpha: mean * concentration, Beta: (1 - mean) * concentration, Src: random}.Rand()
}

func coin(random *rand.Rand, rate float64) float64 {
	if random.Float64() < rate {
		return 1
	}
	return 0
}

func runsOf(random *rand.Rand, rate float64, runs int) []float64 {
	outcomes := make([]float64, runs)
	for i := range outcomes {
		outcomes[i] = coin(random, rate)
	}
	return outcomes
}

// suite describes a simulated paired experiment.
type suite struct {
	tasks, runs int
	// rate is the baseline's mean pass rate, lift (at most ½) the share of its failures that the
	// candidate turns into passes.
	rate, lift float64
	// correlation is that of two runs of a task.
	correlation float64
	// perCluster tasks share their true rate and their lift; 0 and 1 mean none.
	perCluster int
	strata     int
}

// truth is the expected difference of the arms.
func (s suite) truth() float64 { return s.lift * (1 - s.rate) }

func (s suite) draw(random *rand.Rand) []Pair {
	pairs := make([]Pair, s.tasks)
	rate, lift := 0.0, 0.0
	for i := range pairs {
		if s.perCluster < 2 || i%s.perCluster == 0 {
			rate = taskRate(random, s.rate, s.correlation)
			lift = 2 * s.lift * random.Float64()
		}
		if s.perCluster > 1 {
			pairs[i].Cluster = string(rune('A' + i/s.perCluster))
		}
		if s.strata > 1 {
			pairs[i].Stratum = string(rune('A' + i%s.strata))
		}
		pairs[i].Baseline = runsOf(random, rate, s.runs)
		pairs[i].Candidate = runsOf(random, rate+lift*(1-rate), s.runs)
	}
	return pairs
}
