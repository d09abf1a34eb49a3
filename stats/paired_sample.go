package stats

import (
	"fmt"
	"math"
	"slices"
)

// pairedSample is the validated input of a comparison: one difference per task, and where it
// belongs.
type pairedSample struct {
	differences []float64
	clusters    []string
	strata      []string
	// single is true when each arm ran every task once and scored 0 or 1; binary when every value
	// is 0 or 1; bounded when every value lies between 0 and 1.
	single, binary, bounded     bool
	candidateRuns, baselineRuns int
	ratio                       bool
	runs, unpaired              int
	candidateMean, baselineMean float64
	sums                        []float64
}

func newPairedSample(pairs []Pair, ratio bool) (*pairedSample, error) {
	sample := &pairedSample{
		single:  true,
		binary:  !ratio,
		bounded: !ratio,
		ratio:   ratio,
	}
	for i, pair := range pairs {
		if !pair.complete() {
			sample.unpaired++
			continue
		}
		if err := sample.add(pair, i); err != nil {
			return nil, fmt.Errorf("%s: %w", taskName(pair, i), err)
		}
	}
	if len(sample.differences) == 0 {
		return nil, fmt.Errorf("no task has runs of both arms: %w", ErrNoData)
	}
	n := float64(len(sample.differences))
	sample.candidateMean /= n
	sample.baselineMean /= n
	sample.collapseSmallStrata()
	return sample, nil
}

func taskName(pair Pair, index int) string {
	if pair.Task == "" {
		return fmt.Sprintf("task %d", index+1)
	}
	return fmt.Sprintf("task %q", pair.Task)
}

func (s *pairedSample) add(pair Pair, index int) error {
	candidate, err := s.armMean(pair.Candidate)
	if err != nil {
		return err
	}
	baseline, err := s.armMean(pair.Baseline)
	if err != nil {
		return err
	}
	cluster := "cluster " + pair.Cluster
	if pair.Cluster == "" {
		// A separate prefix keeps lone tasks from colliding with named clusters.
		cluster = fmt.Sprintf("task %d", index)
	}
	s.differences = append(s.differences, snapToZero(candidate-baseline))
	s.clusters = append(s.clusters, cluster)
	s.strata = append(s.strata, pair.Stratum)
	s.runs += len(pair.Candidate) + len(pair.Baseline)
	s.candidateRuns += len(pair.Candidate)
	s.baselineRuns += len(pair.Baseline)
	s.candidateMean += candidate
	s.baselineMean += baseline
	return nil
}

// snapToZero removes the rounding residue of equal means, which would otherwise count as a tiny
// win.
func snapToZero(difference float64) float64 {
	if math.Abs(difference) < 1e-12 {
		return 0
	}
	return difference
}

func (s *pairedSample) armMean(values []float64) (float64, error) {
	if err := checkFinite("value", values...); err != nil {
		return 0, err
	}
	if len(values) != 1 || (values[0] != 0 && values[0] != 1) {
		s.single = false
	}
	total := 0.0
	for _, value := range values {
		s.binary = s.binary && (value == 0 || value == 1)
		if s.ratio {
			if err := checkPositive("value", value); err != nil {
				return 0, err
			}
			value = math.Log(value)
		} else if value < 0 || value > 1 {
			s.bounded = false
		}
		total += value
	}
	return total / float64(len(values)), nil
}

// collapseSmallStrata puts strata of a single cluster together, because they have no variance; a
// last one left alone joins any other.
func (s *pairedSample) collapseSmallStrata() {
	const pooled = "\x00small strata"
	members := map[string]map[string]bool{}
	for i, stratum := range s.strata {
		if members[stratum] == nil {
			members[stratum] = map[string]bool{}
		}
		members[stratum][s.clusters[i]] = true
	}
	if len(members) < 2 {
		return
	}
	loneliest := map[string]bool{}
	biggest := ""
	for i, stratum := range s.strata {
		if len(members[stratum]) < 2 {
			loneliest[s.clusters[i]] = true
		} else if biggest == "" || len(members[stratum]) > len(members[biggest]) {
			biggest = stratum
		}
	}
	for i, stratum := range s.strata {
		if len(members[stratum]) >= 2 {
			continue
		}
		s.strata[i] = pooled
		if len(loneliest) < 2 && biggest != "" {
			s.strata[i] = biggest
		}
	}
}

func (s *pairedSample) isStratified() bool {
	return slices.ContainsFunc(s.strata, func(stratum string) bool { return stratum != s.strata[0] })
}

func (s *pairedSample) isClustered() bool { return len(s.clusterSums()) < len(s.differences) }

func (s *pairedSample) isSingleBinary() bool {
	return s.single && !s.ratio && !s.isClustered() && !s.isStratified()
}

// clusterSums adds the differences up by cluster, in order of first appearance: the units whose
// signs may flip.
func (s *pairedSample) clusterSums() []float64 {
	if s.sums != nil {
		return s.sums
	}
	owners, count := number(s.clusters)
	s.sums = make([]float64, count)
	for i, at := range owners {
		s.sums[at] = snapToZero(s.sums[at] + s.differences[i])
	}
	return s.sums
}

// standardError returns the standard error of Σ_s (n_s/N)·d̄_s over strata s, cluster-robust within
// each, with G − S degrees of freedom. Without strata and clusters it is sd/√n with n − 1.
func (s *pairedSample) standardError() (se, df float64) {
	type unit struct{ stratum, cluster string }
	units := make([]unit, len(s.strata))
	for i, stratum := range s.strata {
		units[i] = unit{stratum, s.clusters[i]}
	}
	strata, nStrata := number(s.strata)
	members, nUnits := number(units)
	sum, count := make([]float64, nStrata), make([]float64, nStrata)
	for i, stratum := range strata {
		sum[stratum] += s.differences[i]
		count[stratum]++
	}
	residuals, owners := make([]float64, nUnits), make([]int, nUnits)
	for i, at := range members {
		residuals[at] += s.differences[i] - sum[strata[i]]/count[strata[i]]
		owners[at] = strata[i]
	}
	squares, groups := make([]float64, nStrata), make([]float64, nStrata)
	for at, residual := range residuals {
		squares[owners[at]] += residual * residual
		groups[owners[at]]++
	}
	variance := 0.0
	total := float64(len(s.differences))
	for stratum, g := range groups {
		if g > 1 {
			variance += squares[stratum] * g / (g - 1) / (total * total)
		}
	}
	return math.Sqrt(variance), float64(nUnits - nStrata)
}

// number numbers the distinct keys in order of first appearance. It returns the number of each key,
// and how many there are.
func number[K comparable](keys []K) (numbers []int, count int) {
	seen := make(map[K]int, len(keys))
	for _, key := range keys {
		if _, known := seen[key]; !known {
			seen[key] = len(seen)
		}
		numbers = append(numbers, seen[key])
	}
	return numbers, len(seen)
}

// addTwo is Bonett–Price for any differences in [−1, 1]: two imaginary tasks, one fully won and one
// fully lost, join the sample.
func (s *pairedSample) addTwo(level float64) Interval {
	sums := s.clusterSums()
	var total, squares float64
	for _, difference := range s.differences {
		total += difference
		squares += difference * difference
	}
	n := float64(len(s.differences)) + 2
	centre := total / n
	se := math.Sqrt((squares + 2 - n*centre*centre) / n / n)
	if deflated := float64(len(sums)) + 2; deflated < n {
		se *= math.Sqrt(n / deflated)
	}
	quantile := studentQuantile(level, float64(len(sums))+1)
	interval := symmetric(centre, se, quantile, level, MethodAddTwo)
	interval.Est = total / (n - 2)
	return interval.cutTo(-1)
}

// marginInterval is the interval for equivalence and non-inferiority: see [Decide].
func (s *pairedSample) marginInterval(comparison Comparison, config CompareConfig) (*Interval, error) {
	config.Level = 1 - (1-config.Level)/(float64(max(1, config.Tests))*atLooks(config.Looks, config.Among))
	wide := Comparison{Est: comparison.Est}
	if s.isSingleBinary() && config.Interval == "" {
		interval, err := BonettPrice(comparison.Wins, comparison.Losses, comparison.Tasks, config.Level)
		if err != nil {
			return nil, err
		}
		wide.Interval, wide.boundedInterval = &interval, &interval
	} else if err := s.attachInterval(&wide, config); err != nil {
		return nil, err
	}
	if wide.Interval == nil || !s.bounded {
		return wide.Interval, nil
	}
	hull := wide.Interval.hull(*wide.boundedInterval).hull(s.gainsAndLosses(config.Level))
	return &hull, nil
}

// gainsAndLosses is the difference between what was gained and what was lost over all tasks, as of
// two shares. Values between 0 and 1 vary less than a share with their mean, so it is not too
// short.
func (s *pairedSample) gainsAndLosses(level float64) Interval {
	var gains, losses float64
	for _, difference := range s.differences {
		gains += math.Max(0, difference)
		losses += math.Max(0, -difference)
	}
	n := float64(len(s.differences))
	units := float64(len(s.clusterSums()))
	return NewcombeUnpaired(clopperPearson(gains/n*units, units, level), clopperPearson(losses/n*units, units, level))
}
