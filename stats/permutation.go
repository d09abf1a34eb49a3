package stats

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

const (
	// maxExactFlips is the largest number of informative (non-zero) differences whose sign patterns
	// are all enumerated.
	maxExactFlips = 18
	// maxFlipDraws bounds the random patterns where the differences are on no lattice.
	maxFlipDraws = 10_000_000
	// drawnLevel is the confidence with which a drawn p lies on its side of every threshold.
	drawnLevel = 0.999
)

// signFlipConfig says how to permute. The zero value is seed 0 and
// defaultReplicates random patterns where there are too many to look at all.
type signFlipConfig struct {
	Replicates int
	Seed       uint64
	// Thresholds are the p-values on which a claim turns.
	Thresholds []float64
}

// signFlipResult is the p-value of a sign-flip test and how it came about.
type signFlipResult struct {
	P float64
	// Draws is the number of random patterns; 0 means that p is exact.
	Draws int
}

// signFlip tests whether paired differences are centred at zero by flipping their signs.
//
// Formula: p = share of the 2^n sign patterns s with |Σ s_i d_i| ≥ |Σ d_i|. Differences that are
// multiples of one step, as means of passes are, are counted by convolution, and up to
// [maxExactFlips] others one by one. Beyond, p = (1 + hits)/(1 + R) over R random patterns, where R
// doubles until the 99.9% interval of p holds no threshold, up to [maxFlipDraws].
//
// Use it for the per-task differences of two arms, for any number of tasks and any distribution
// that is symmetric under the null hypothesis; for clustered tasks give it the sum of each cluster.
//
// Do not use it on single runs that share tasks, nor expect small p-values from few tasks: the
// smallest two-sided one is 2/2^n.
func signFlip(differences []float64, config signFlipConfig) (signFlipResult, error) {
	if len(differences) == 0 {
		return signFlipResult{}, ErrNoData
	}
	if err := checkFinite("difference", differences...); err != nil {
		return signFlipResult{}, err
	}
	config.Replicates = cmp.Or(config.Replicates, defaultReplicates)
	if config.Replicates < 100 {
		return signFlipResult{}, fmt.Errorf("random sign patterns must be at least 100, not %d", config.Replicates)
	}
	informative := slices.DeleteFunc(slices.Clone(differences), func(d float64) bool { return d == 0 })
	reaches := reachesObserved(informative)
	if steps, found := onLattice(informative); found {
		return signFlipResult{P: flipShare(steps)}, nil
	}
	if n := len(informative); n <= maxExactFlips {
		return signFlipResult{P: float64(enumerateFlips(informative, reaches)) / float64(int(1)<<n)}, nil
	}
	return drawFlips(informative, config, reaches), nil
}

// drawFlips draws random patterns until p is known to lie on one side of every threshold.
func drawFlips(differences []float64, config signFlipConfig, reaches func(float64) bool) signFlipResult {
	source := rand.NewPCG(config.Seed, 0)
	draws, hits := 0, 0
	for {
		more := min(max(config.Replicates, draws), maxFlipDraws-draws)
		hits += randomFlips(differences, more, source, reaches)
		draws += more
		known := wilson(float64(hits), float64(draws), drawnLevel)
		open := slices.ContainsFunc(config.Thresholds, func(p float64) bool { return known.Lo <= p && p <= known.Hi })
		if !open || draws >= maxFlipDraws {
			return signFlipResult{P: float64(1+hits) / float64(1+draws), Draws: draws}
		}
	}
}

// reachesObserved returns the test "at least as extreme as observed", with a tolerance for sums
// that differ only by rounding.
func reachesObserved(differences []float64) func(float64) bool {
	var observed, scale float64
	for _, difference := range differences {
		observed += difference
		scale += math.Abs(difference)
	}
	bound := math.Abs(observed) - 1e-10*scale
	return func(sum float64) bool { return math.Abs(sum) >= bound }
}

// enumerateFlips walks all patterns in Gray-code order: each step flips one sign.
func enumerateFlips(differences []float64, reaches func(float64) bool) int {
	sum := 0.0
	for _, difference := range differences {
		sum += difference
	}
	signed := slices.Clone(differences)
	hits := 0
	for pattern := uint(1); ; pattern++ {
		if reaches(sum) {
			hits++
		}
		if pattern == 1<<len(differences) {
			return hits
		}
		flip := bits.TrailingZeros(pattern)
		sum -= 2 * signed[flip]
		signed[flip] = -signed[flip]
	}
}

func randomFlips(differences []float64, replicates int, source *rand.PCG, reaches func(float64) bool) int {
	hits := 0
	for range replicates {
		sum := 0.0
		for start := 0; start < len(differences); start += 64 {
			signs := source.Uint64()
			for _, difference := range differences[start:min(start+64, len(differences))] {
				// The random bit becomes the sign bit: no branch the processor could guess wrong.
				sum += math.Float64frombits(math.Float64bits(difference) ^ signs<<63)
				signs >>= 1
			}
		}
		if reaches(sum) {
			hits++
		}
	}
	return hits
}
