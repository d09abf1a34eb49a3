package stats

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// reportedExperiments are simulated for each variance that is tried in a report.
const reportedExperiments = 300

// detectable is the smallest difference that an experiment like this one finds with DefaultPower.
// The variance of the differences is only estimated, so that the power is averaged over values of
// it that the sample allows.
func (s *pairedSample) detectable(comparison Comparison, config CompareConfig) float64 {
	if comparison.SE == 0 {
		return 0
	}
	alpha := (1 - cmp.Or(config.Level, DefaultLevel)) / float64(max(1, config.Tests))
	_, df := s.standardError()
	df = math.Max(1, df)
	start := (distuv.UnitNormal.Quantile(1-alpha/2) + distuv.UnitNormal.Quantile(DefaultPower)) * comparison.SE
	n := float64(len(s.differences))
	design := Design{
		Between:       comparison.SE * comparison.SE * n,
		RunsCandidate: int(math.Round(float64(s.candidateRuns) / n)),
		RunsBaseline:  int(math.Round(float64(s.baselineRuns) / n)),
	}
	steps := design.steps()
	simulated := s.binary && steps > 0 && len(s.differences) <= maxSimulatedTasks && !s.isClustered() &&
		!s.isStratified()
	most := math.Inf(1)
	if s.bounded {
		most = 1
	}
	factors := varianceFactors(df)
	return leastEffect(start, most, DefaultPower, func(effect float64) float64 {
		sum := 0.0
		for _, factor := range factors {
			if simulated {
				sum += newLattice(
					steps,
					effect,
					factor*design.Between,
				).power(len(s.differences), alpha, reportedExperiments)
			} else {
				sum += studentPower(effect/(comparison.SE*math.Sqrt(factor)), df, alpha)
			}
		}
		return sum / float64(len(factors))
	})
}

// varianceFactors are the middles of the thirds of what true/estimated variance can be with df
// degrees of freedom.
func varianceFactors(df float64) []float64 {
	chi := distuv.ChiSquared{K: df}
	factors := make([]float64, 0, 3)
	for _, share := range []float64{1. / 6, 1. / 2, 5. / 6} {
		factors = append(factors, df/chi.Quantile(share))
	}
	return factors
}
