package stats

import (
	"cmp"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// likelyVariances are tried in a report, each as likely as the others.
	likelyVariances = 6
	// coarseExperiments are simulated for each of them to find out where to look closely, and
	// fineExperiments for each of them and each of the effects around there.
	coarseExperiments = 60
	fineExperiments   = 300
	// unseenTasks is the weight that a difference has which no task has shown.
	unseenTasks = 0.25
)

// detectable returns the smallest difference that an experiment like this one finds with
// DefaultPower. The variance of the differences is only estimated, so that the power is averaged
// over values of it that the sample allows.
func (s *pairedSample) detectable(comparison Comparison, config CompareConfig) float64 {
	if comparison.SE == 0 {
		return 0
	}
	risk := float64(max(1, config.Tests)) * atLooks(config.Looks, config.Among)
	alpha := (1 - cmp.Or(config.Level, DefaultLevel)) / risk
	_, df := s.standardError()
	df = math.Max(1, df)
	start := (distuv.UnitNormal.Quantile(1-alpha/2) + distuv.UnitNormal.Quantile(DefaultPower)) * comparison.SE
	most := math.Inf(1)
	if s.bounded {
		most = 1
	}
	factors := varianceFactors(df)
	n := float64(len(s.differences))
	// The standard error of an interval for one run is smoothed, which makes it too large here.
	variance := comparison.SD * comparison.SD
	if comparison.SD < 1e-9 { // equal differences, but for rounding
		variance = comparison.SE * comparison.SE * n
	}
	design := Design{
		Between:       variance,
		RunsCandidate: int(math.Round(float64(s.candidateRuns) / n)),
		RunsBaseline:  int(math.Round(float64(s.baselineRuns) / n)),
	}
	steps := design.steps()
	if !s.binary || steps == 0 || len(s.differences) > maxSimulatedTasks || s.isClustered() || s.isStratified() {
		return leastEffect(start, most, DefaultPower, func(effect float64) float64 {
			return average(factors, func(factor float64) float64 {
				return studentPower(effect/(comparison.SE*math.Sqrt(factor)), df, alpha)
			})
		})
	}
	shape := s.shape(steps, comparison.Est)
	random := rand.New(rand.NewPCG(uint64(len(s.differences)), uint64(steps)))
	rule := newLatticeRule(steps, len(s.differences), alpha)
	return leastSimulatedEffect(start, func(effect float64, experiments int) float64 {
		return average(factors, func(factor float64) float64 {
			return newLattice(steps, shape, effect, factor*variance).simulate(random, rule, experiments)
		})
	})
}

// leastSimulatedEffect is [leastEffect] for a power that is simulated, each time with other random
// numbers: a straight line through the probits of the powers around the place evens them out.
func leastSimulatedEffect(start float64, power func(effect float64, experiments int) float64) float64 {
	const most = 0.99
	place := leastEffect(start, 1, DefaultPower, func(effect float64) float64 {
		return power(effect, coarseExperiments)
	})
	place = math.Min(place, 0.95)
	var effects, probits []float64
	for _, part := range []float64{0.88, 0.94, 1, 1.06, 1.12} {
		effect := math.Min(most, part*place)
		share := clamp(power(effect, fineExperiments), 0.001, 0.999)
		effects, probits = append(effects, effect), append(probits, distuv.UnitNormal.Quantile(share))
	}
	at, spread := moments(effects)
	level, _ := moments(probits)
	slope := 0.0
	for i, effect := range effects {
		slope += (effect - at) * (probits[i] - level) / spread / float64(len(effects)-1)
	}
	effect := at + (distuv.UnitNormal.Quantile(DefaultPower)-level)/slope
	if slope <= 0 || effect > most {
		return undetectable
	}
	return effect
}

// shape returns the logarithms of how often the differences of the tasks take each value, in the
// direction of the estimate, or in both where it has none.
func (s *pairedSample) shape(steps int, estimate float64) []float64 {
	shape := make([]float64, 2*steps+1)
	for i := range shape {
		shape[i] = unseenTasks
	}
	for _, difference := range s.differences {
		at := int(math.Round(difference * float64(steps)))
		switch {
		case estimate > 0:
			shape[steps+at]++
		case estimate < 0:
			shape[steps-at]++
		default:
			shape[steps+at] += 0.5
			shape[steps-at] += 0.5
		}
	}
	for i := range shape {
		shape[i] = math.Log(shape[i])
	}
	return shape
}

func average(values []float64, of func(float64) float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += of(value)
	}
	return sum / float64(len(values))
}

// varianceFactors returns what true/estimated variance can be with df degrees of freedom: the
// middles of parts that are equally likely.
func varianceFactors(df float64) []float64 {
	chi := distuv.ChiSquared{K: df}
	factors := make([]float64, likelyVariances)
	for i := range factors {
		factors[i] = df / chi.Quantile((float64(i)+0.5)/likelyVariances)
	}
	return factors
}
