package stats

import "math"

const (
	// maxDenominator bounds the step that differences are looked for on: with 7 and 9 runs and four
	// checks it is 252.
	maxDenominator = 100_000
	// maxConvolution bounds the additions of a convolution, about a tenth of a second.
	maxConvolution = 100_000_000
)

// onLattice returns the differences as whole numbers of the largest step that they are all
// multiples of, if there is one and their sums are few enough to be counted.
func onLattice(differences []float64) (steps []int, found bool) {
	denominator := 1
	for _, difference := range differences {
		own := denominatorOf(difference * float64(denominator))
		if denominator *= own; own == 0 || denominator > maxDenominator {
			return nil, false
		}
	}
	steps = make([]int, len(differences))
	divisor := 0
	for i, difference := range differences {
		if steps[i] = int(math.Round(difference * float64(denominator))); steps[i] == 0 {
			return nil, false // far smaller than any step
		}
		divisor = greatestDivisor(divisor, steps[i])
	}
	reach := 0
	for i := range steps {
		steps[i] /= divisor
		reach += max(steps[i], -steps[i])
		if reach > maxConvolution/len(steps) {
			return nil, false
		}
	}
	return steps, true
}

// denominatorOf returns the denominator of the fraction that a value was rounded from, by its
// continued fraction; 0 if it looks like none.
func denominatorOf(value float64) int {
	const rounding = 1e-9
	if math.Abs(value) > maxConvolution {
		return 0
	}
	before, denominator := 0.0, 1.0
	for rest := value; denominator <= maxDenominator; {
		if scaled := value * denominator; math.Abs(scaled-math.Round(scaled)) < rounding {
			return int(denominator)
		}
		rest = 1 / (rest - math.Floor(rest))
		before, denominator = denominator, math.Floor(rest)*denominator+before
	}
	return 0
}

func greatestDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// flipShare returns the share of all sign patterns whose sum is at least as extreme as the sum of
// the steps as they are.
func flipShare(steps []int) float64 {
	observed := 0
	for _, step := range steps {
		observed += step
	}
	var sums signedSums
	return math.Min(1, 2*sums.tail(steps, max(observed, -observed)))
}

// signedSums is the distribution of a sum of whole numbers with random signs, built up by adding
// one number after the other. Its memory is used again.
type signedSums struct{ chance, next []float64 }

// tail returns the chance of a sum of at least bound.
func (s *signedSums) tail(numbers []int, bound int) float64 {
	reach := 0
	for _, number := range numbers {
		reach += max(number, -number)
	}
	if cap(s.chance) < 2*reach+1 {
		s.chance, s.next = make([]float64, 2*reach+1), make([]float64, 2*reach+1)
	}
	chance, next := s.chance[:2*reach+1], s.next[:2*reach+1]
	clear(chance)
	chance[reach] = 1
	span := 0
	for _, number := range numbers {
		size := max(number, -number)
		clear(next[reach-span-size : reach+span+size+1])
		for at := reach - span; at <= reach+span; at++ {
			half := chance[at] / 2
			next[at-size] += half
			next[at+size] += half
		}
		chance, next = next, chance
		span += size
	}
	tail := 0.0
	for _, share := range chance[min(max(0, reach+bound), 2*reach+1):] {
		tail += share
	}
	return tail
}
