package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// lattice is a distribution of the difference of two arms on one task when each run passes or
// fails: the values are multiples of 1/steps between −1 and 1, and chance[i] belongs to
// (i − steps)/steps.
type lattice struct {
	steps  int
	chance []float64
	// shape are the logarithms of what the chances are like before the mean and the variance are
	// known; nil means all alike.
	shape []float64
}

// maxSteps bounds the lattice; differences with more steps are as good as continuous.
const maxSteps = 60

// newLattice returns the least committed (maximum entropy) distribution with the mean and the
// variance, or the one nearest to a shape: chance ∝ exp(shape + a·x + b·x²). A variance that no
// such difference can have is raised to the least that is possible.
func newLattice(steps int, shape []float64, mean, variance float64) *lattice {
	l := &lattice{steps: steps, chance: make([]float64, 2*steps+1), shape: shape}
	mean = clamp(mean, -0.999, 0.999)
	// Between two neighbouring values the variance is at least that of a coin between them.
	below := math.Floor(mean * float64(steps))
	part := mean*float64(steps) - below
	least := part * (1 - part) / float64(steps*steps)
	most := 1 - mean*mean
	variance = clamp(variance, least+0.02*(most-least), most-0.02*(most-least))
	l.fit(mean, variance+mean*mean)
	return l
}

func (l *lattice) value(i int) float64 { return float64(i-l.steps) / float64(l.steps) }

// fit solves for a and b by Newton's method on the convex dual, with halved steps where a whole one
// would not improve.
func (l *lattice) fit(first, second float64) {
	a, b := 0.0, 0.0
	objective := l.setChances(a, b) - a*first - b*second
	for range 100 {
		var m1, m2, m3, m4 float64
		for i, p := range l.chance {
			x := l.value(i)
			m1, m2, m3, m4 = m1+p*x, m2+p*x*x, m3+p*x*x*x, m4+p*x*x*x*x
		}
		g1, g2 := first-m1, second-m2
		if math.Abs(g1)+math.Abs(g2) < 1e-10 {
			return
		}
		h11, h12, h22 := m2-m1*m1+1e-12, m3-m1*m2, m4-m2*m2+1e-12
		det := h11*h22 - h12*h12
		da, db := (h22*g1-h12*g2)/det, (h11*g2-h12*g1)/det
		scale, next := 1.0, objective
		for ; scale > 1e-9; scale /= 2 {
			next = l.setChances(a+scale*da, b+scale*db) - (a+scale*da)*first - (b+scale*db)*second
			if next < objective {
				break
			}
		}
		if next >= objective { // no step shows any more than the rounding of the objective
			return
		}
		a, b, objective = a+scale*da, b+scale*db, next
	}
}

// setChances sets the chances for a and b and returns the logarithm of their sum before scaling.
func (l *lattice) setChances(a, b float64) float64 {
	for i := range l.chance {
		x := l.value(i)
		l.chance[i] = a*x + b*x*x
		if l.shape != nil {
			l.chance[i] += l.shape[i]
		}
	}
	return normalise(l.chance)
}

// normalise turns logarithms of weights into chances, and returns the logarithm of the weights'
// sum.
func normalise(logarithms []float64) float64 {
	highest := slices.Max(logarithms)
	total := 0.0
	for i := range logarithms {
		logarithms[i] = math.Exp(logarithms[i] - highest)
		total += logarithms[i]
	}
	for i := range logarithms {
		logarithms[i] /= total
	}
	return highest + math.Log(total)
}

// power simulates experiments and returns the share in which the claim rule finds a positive
// difference.
func (l *lattice) power(tasks int, alpha float64, experiments int) float64 {
	random := rand.New(rand.NewPCG(uint64(tasks), uint64(l.steps)))
	return l.simulate(random, newLatticeRule(l.steps, tasks, alpha), experiments)
}

// simulate is power with the caller's random numbers and rule.
func (l *lattice) simulate(random *rand.Rand, rule *latticeRule, experiments int) float64 {
	if rule.tasks < 2 {
		return 0
	}
	const buckets = 256 // each knows where the search among the cumulated chances starts
	cumulated := make([]float64, len(l.chance))
	total := 0.0
	for i, p := range l.chance {
		total += p
		cumulated[i] = total
	}
	cumulated[len(cumulated)-1] = math.Inf(1)
	var start [buckets]int
	at := 0
	for i := range start {
		for cumulated[at] < float64(i)/buckets {
			at++
		}
		start[i] = at
	}
	counts := make([]int, len(l.chance))
	found := 0
	for range experiments {
		clear(counts)
		for range rule.tasks {
			u := random.Float64()
			at := start[int(u*buckets)]
			for cumulated[at] < u {
				at++
			}
			counts[at]++
		}
		if rule.finds(counts) {
			found++
		}
	}
	return float64(found) / float64(experiments)
}

// latticeRule is the rule of [Compare] and [Decide] for differences on a lattice: a sign-flip test
// (McNemar's for one run) below alpha, and an interval above 0.
type latticeRule struct {
	steps, tasks int
	alpha        float64
	student      float64
	z            float64
	sizes        []int
	sums         signedSums
}

func newLatticeRule(steps, tasks int, alpha float64) *latticeRule {
	r := &latticeRule{
		steps: steps,
		tasks: tasks,
		alpha: alpha,
		z:     normalQuantile(1 - alpha),
	}
	if tasks > 1 { // one has no variance, and finds nothing
		r.student = studentQuantile(1-alpha, float64(tasks-1))
	}
	return r
}

// finds reports whether the rule claims a positive difference; counts are tasks by difference.
func (r *latticeRule) finds(counts []int) bool {
	sum, squares := 0, 0
	for i, count := range counts {
		j := i - r.steps
		sum += j * count
		squares += j * j * count
	}
	if sum <= 0 {
		return false
	}
	s, n := float64(sum), float64(r.tasks)
	if r.steps == 1 {
		centre, se := bonettPrice(float64(counts[2]), float64(counts[0]), n)
		if centre <= r.z*se {
			return false
		}
	} else if se := math.Sqrt((float64(squares) - s*s/n) / (n - 1) * n); s <= r.student*se {
		return false
	}
	// Far from its threshold the sign-flip test of many tasks needs no exact tail.
	if z := s / math.Sqrt(float64(squares)); r.tasks > 150 || r.tasks > 25 && math.Abs(z-r.z) > 0.3 {
		return z > r.z
	}
	return r.flipTail(counts, sum) < r.alpha
}

// flipTail returns the two-sided p-value of the exact sign-flip test.
func (r *latticeRule) flipTail(counts []int, observed int) float64 {
	r.sizes = r.sizes[:0]
	for i, count := range counts {
		for range count {
			r.sizes = append(r.sizes, i-r.steps)
		}
	}
	return 2 * r.sums.tail(r.sizes, observed)
}
