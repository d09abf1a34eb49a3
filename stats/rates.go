package stats

import "math"

// rateSteps is the number of steps in the grid of an arm's true pass rate on a task.
const rateSteps = 24

// rates is a distribution of the true pass rates of two arms on one task: chance[b·(rateSteps+1)+c]
// belongs to b/rateSteps for the baseline and c/rateSteps for the candidate.
type rates struct {
	chance []float64
	// known are, for each pair of rates, the difference, its square, and the variances of a run.
	known [][4]float64
}

// newRates returns the least committed (maximum entropy) distribution in which the arms differ by
// the effect and vary as the design says: chance ∝ exp(θ·known). It reports false where no rates
// can be like that.
func newRates(effect float64, design Design) (*rates, bool) {
	r := &rates{}
	for b := range rateSteps + 1 {
		for c := range rateSteps + 1 {
			baseline, candidate := float64(b)/rateSteps, float64(c)/rateSteps
			difference := candidate - baseline
			r.known = append(r.known, [4]float64{
				difference, difference * difference, candidate * (1 - candidate), baseline * (1 - baseline),
			})
		}
	}
	r.chance = make([]float64, len(r.known))
	means := r.fit([4]float64{
		effect, design.Between + effect*effect, design.WithinCandidate, design.WithinBaseline,
	})
	reached := design
	reached.Between, reached.WithinCandidate, reached.WithinBaseline = means[1]-means[0]*means[0], means[2], means[3]
	near := math.Abs(means[0]-effect) < 0.01*effect &&
		math.Abs(reached.perTask()-design.perTask()) < 0.02*design.perTask()
	return r, near
}

// fit solves for θ by Newton's method on the convex dual, with halved steps where a whole one would
// not improve, and returns the means that were reached. A little ridge keeps θ finite where the
// wanted means are at the edge of what is possible.
func (r *rates) fit(wanted [4]float64) (means [4]float64) {
	const ridge = 1e-7
	objective := func(theta [4]float64) float64 {
		value := r.setChances(theta)
		for k, t := range theta {
			value += ridge*t*t/2 - t*wanted[k]
		}
		return value
	}
	var theta [4]float64
	lowest := objective(theta)
	for range 60 {
		gradient, curvature := r.moments()
		means = gradient
		size := 0.0
		for k, t := range theta {
			gradient[k] = wanted[k] - means[k] - ridge*t
			curvature[k][k] += ridge
			size += math.Abs(gradient[k])
		}
		if size < 1e-7 {
			break
		}
		step := solve(curvature, gradient)
		scale := 1.0
		for ; scale > 1e-6; scale /= 2 {
			next := theta
			for k := range next {
				next[k] += scale * step[k]
			}
			if value := objective(next); value < lowest {
				theta, lowest = next, value
				break
			}
		}
		if scale <= 1e-6 {
			break
		}
	}
	r.setChances(theta)
	means, _ = r.moments()
	return means
}

// setChances sets the chances for θ and returns the logarithm of their sum before scaling.
func (r *rates) setChances(theta [4]float64) float64 {
	for n, known := range r.known {
		r.chance[n] = theta[0]*known[0] + theta[1]*known[1] + theta[2]*known[2] + theta[3]*known[3]
	}
	return normalise(r.chance)
}

// moments returns the means of what is known, and their covariances.
func (r *rates) moments() (means [4]float64, covariances [4][4]float64) {
	for n, known := range r.known {
		for k := range known {
			means[k] += r.chance[n] * known[k]
			for l := range known {
				covariances[k][l] += r.chance[n] * known[k] * known[l]
			}
		}
	}
	for k := range means {
		for l := range means {
			covariances[k][l] -= means[k] * means[l]
		}
	}
	return means, covariances
}

// solve is Gauss's elimination with pivots.
func solve(matrix [4][4]float64, right [4]float64) (solution [4]float64) {
	for column := range matrix {
		pivot := column
		for row := column + 1; row < len(matrix); row++ {
			if math.Abs(matrix[row][column]) > math.Abs(matrix[pivot][column]) {
				pivot = row
			}
		}
		matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
		right[column], right[pivot] = right[pivot], right[column]
		for row := column + 1; row < len(matrix); row++ {
			factor := matrix[row][column] / matrix[column][column]
			for k := column; k < len(matrix); k++ {
				matrix[row][k] -= factor * matrix[column][k]
			}
			right[row] -= factor * right[column]
		}
	}
	for row := len(matrix) - 1; row >= 0; row-- {
		value := right[row]
		for k := row + 1; k < len(matrix); k++ {
			value -= matrix[row][k] * solution[k]
		}
		solution[row] = value / matrix[row][row]
	}
	return solution
}

// lattice returns the distribution of the difference that so many runs of each arm show on one
// task.
func (r *rates) lattice(runsCandidate, runsBaseline int) *lattice {
	steps := leastCommonMultiple(runsCandidate, runsBaseline)
	l := &lattice{steps: steps, chance: make([]float64, 2*steps+1)}
	candidates, baselines := passes(runsCandidate), passes(runsBaseline)
	for b, ofBaseline := range baselines {
		for c, ofCandidate := range candidates {
			chance := r.chance[b*(rateSteps+1)+c]
			for x, px := range ofCandidate {
				for y, py := range ofBaseline {
					l.chance[steps+x*steps/runsCandidate-y*steps/runsBaseline] += chance * px * py
				}
			}
		}
	}
	return l
}

// passes returns the chances of each number of passes in so many runs, for every rate of the grid.
func passes(runs int) [][]float64 {
	all := make([][]float64, rateSteps+1)
	for i := range all {
		rate := float64(i) / rateSteps
		chances := make([]float64, runs+1)
		chances[0] = 1
		for done := range runs {
			for x := done + 1; x > 0; x-- {
				chances[x] = chances[x]*(1-rate) + chances[x-1]*rate
			}
			chances[0] *= 1 - rate
		}
		all[i] = chances
	}
	return all
}
