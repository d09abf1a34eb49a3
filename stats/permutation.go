package stats

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// maxExactFlips is the largest number of informative (non-zero) differences whose sign patterns are
// all enumerated.
const maxExactFlips = 18

// Alternative is what a test looks for.
type Alternative string

// The alternatives of a test of a difference against zero.
const (
	TwoSided Alternative = "two-sided"
	Greater  Alternative = "greater"
	Less     Alternative = "less"
)

func (a Alternative) unknown() error {
	return fmt.Errorf("unknown alternative %q, want %s, %s or %s", a, TwoSided, Greater, Less)
}

// signFlipConfig says how to permute. The zero value is a two-sided test with seed 0 and
// defaultReplicates random patterns where enumeration is too long.
type signFlipConfig struct {
	Alternative Alternative
	Replicates  int
	Seed        uint64
}

// signFlipResult is the p-value of a sign-flip test and how it came about.
type signFlipResult struct {
	P float64 `json:"p"`
	// Exact is true when every sign pattern was enumerated.
	Exact bool `json:"exact"`
	// Patterns is the number of sign patterns looked at.
	Patterns int `json:"patterns"`
	// Informative is the number of differences that are not zero; zeros cannot change the result.
	Informative int `json:"informative"`
}

// signFlip tests whether paired differences are centred at zero by flipping their signs.
//
// Formula: p = share of the 2^n sign patterns s with |Σ s_i d_i| ≥ |Σ d_i| (without the bars,
// one-sided). Up to [maxExactFlips] non-zero differences all patterns are counted; beyond, p = (1 +
// hits)/(1 + R) over R random patterns, which is valid for any R.
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
		return signFlipResult{}, fmt.Errorf("%d random sign patterns are too few, want at least 100", config.Replicates)
	}
	informative := slices.DeleteFunc(slices.Clone(differences), func(d float64) bool { return d == 0 })
	reaches, err := reachesObserved(informative, config.Alternative)
	if err != nil {
		return signFlipResult{}, err
	}
	result := signFlipResult{Informative: len(informative)}
	if len(informative) <= maxExactFlips {
		result.Exact, result.Patterns = true, 1<<len(informative)
		result.P = float64(enumerateFlips(informative, reaches)) / float64(result.Patterns)
		return result, nil
	}
	result.Patterns = config.Replicates
	hits := randomFlips(informative, config.Replicates, rand.NewPCG(config.Seed, 0), reaches)
	result.P = float64(1+hits) / float64(1+config.Replicates)
	return result, nil
}

// reachesObserved returns the test "at least as extreme as observed", with a tolerance for sums
// that differ only by rounding.
func reachesObserved(differences []float64, alternative Alternative) (func(float64) bool, error) {
	var observed, scale float64
	for _, difference := range differences {
		observed += difference
		scale += math.Abs(difference)
	}
	tolerance := 1e-10 * scale
	switch alternative {
	case TwoSided, "":
		bound := math.Abs(observed) - tolerance
		return func(sum float64) bool { return math.Abs(sum) >= bound }, nil
	case Greater:
		return func(sum float64) bool { return sum >= observed-tolerance }, nil
	case Less:
		return func(sum float64) bool { return sum <= observed+tolerance }, nil
	}
	return nil, alternative.unknown()
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
