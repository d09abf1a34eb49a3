package stats

import (
	"cmp"
	"fmt"
	"math"
)

// Pair holds what the two arms scored on one task, one value per run. Differences are candidate
// minus baseline.
type Pair struct {
	Task string
	// Cluster names what the task shares with others, for example its repository; empty means the
	// task stands alone.
	Cluster string
	// Stratum names the group within which the task is compared, for example its difficulty; empty
	// is its own group.
	Stratum   string
	Candidate []float64
	Baseline  []float64
}

// complete reports whether both arms ran the task.
func (p Pair) complete() bool { return len(p.Candidate) > 0 && len(p.Baseline) > 0 }

// CompareConfig says how to compare. The zero value is a two-sided comparison at 95% with seed 0.
type CompareConfig struct {
	Level      float64
	Seed       uint64
	Replicates int
	// Interval forces a sign-flip test with this interval: MethodT, MethodBCa or MethodPercentile.
	// Empty follows the rule of the package documentation.
	Interval string
	// Tests is the number of comparisons that share the risk of a false claim; 0 means 1. It does
	// not change the test ([DecideFamily] does), only the MDE.
	Tests int
	// Looks is how often the experiment was looked at, each time with the choice to continue; 0
	// means once. Among is the number of planned comparisons that this one was chosen from. Like
	// Tests they widen the interval that a margin is compared with, and no other.
	Looks, Among int
	// WithoutMDE leaves the MDE at 0: it takes a simulation, and what claims nothing needs none.
	WithoutMDE bool
}

// thresholds are the p-values on which a claim turns, whichever place among the tests Holm's
// correction gives to this one.
func (c CompareConfig) thresholds() []float64 {
	var at []float64
	for test := range max(1, c.Tests) {
		at = append(at, (1-c.Level)/(float64(test+1)*atLooks(c.Looks, c.Among)))
	}
	return at
}

// The names of the paired tests and of the intervals that belong to them only.
const (
	MethodMcNemar         = "mcnemar-exact"
	MethodSignFlip        = "signflip"
	MethodClusterSignFlip = "cluster-signflip"
	MethodStratifiedFlip  = "stratified-signflip"
	MethodStratifiedT     = "stratified-t"
	MethodAddTwo          = "add-two"
	MethodEProcess        = "e-process"
)

// Comparison is the measured difference of two arms. It is evidence, not yet a claim: see [Decide].
type Comparison struct {
	// Est is the mean over tasks of candidate minus baseline; for ratios the mean difference of
	// logarithms.
	Est float64 `json:"est"`
	// Interval is nil where the data allow none.
	Interval *Interval `json:"interval"`
	SE       float64   `json:"se"`
	SD       float64   `json:"sd"`
	P        float64   `json:"p"`
	// PMid is the mid-p value of the McNemar test; T and PT belong to Student's test. They are for
	// reading, P decides.
	PMid *float64 `json:"pMid,omitempty"`
	T    *float64 `json:"t,omitempty"`
	PT   *float64 `json:"pT,omitempty"`
	// EValue is set by a sequential comparison; P is then 1/(largest e-value so far).
	EValue *float64 `json:"eValue,omitempty"`
	Method string   `json:"method"`
	// Exact is true when the p-value was enumerated or has a closed form.
	Exact bool `json:"exact"`
	// Draws is the number of random sign patterns that P rests on where it is not exact, and Seed
	// what they were drawn with.
	Draws int    `json:"draws,omitempty"`
	Seed  uint64 `json:"seed,omitempty"`
	// Reason is the sentence of the rule that chose the method.
	Reason        string  `json:"reason"`
	CandidateMean float64 `json:"candidateMean"`
	BaselineMean  float64 `json:"baselineMean"`
	Tasks         int     `json:"nTasks"`
	Clusters      int     `json:"nClusters"`
	// Runs counts the runs of both arms. Unpaired tasks had runs of one arm only and are left out.
	Runs     int `json:"nRuns"`
	Unpaired int `json:"nUnpaired"`
	// Wins, Losses and Ties count tasks by the sign of their difference.
	Wins   int `json:"wins"`
	Losses int `json:"losses"`
	Ties   int `json:"ties"`
	// MDE is the minimum detectable effect: the smallest true difference that an experiment of this
	// size detects at 80% power, its variance being known only from this one; above 1 if no
	// difference of rates is that large.
	MDE float64 `json:"mde"`
	// Ratio is true when Est is a mean difference of logarithms: exp(Est) is the ratio of geometric
	// means.
	Ratio    bool     `json:"ratio,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	// boundedInterval is the add-two interval of outcomes between 0 and 1.
	boundedInterval *Interval
	// marginInterval is what equivalence and non-inferiority are judged on.
	marginInterval *Interval
}

// Compare measures the difference of two arms with the task as the unit.
//
// Formula: d_i = mean of the candidate's runs − mean of the baseline's runs per task; Est = Σ
// d_i/n. Test and interval by the rule in the package documentation: [McNemar] with [BonettPrice],
// or sign flips with t_{n−1}·sd(d)/√n, its cluster-robust and stratified forms, or BCa.
//
// Use it for pass rates and scores of arms that ran the same tasks. Coverage of the interval is at
// least 94% from 15 tasks on where both arms' rates lie between 20% and 80%, with up to 3 tasks
// per cluster and 20 clusters or more.
//
// Do not use it for cost or time ([CompareRatio]), nor again after every task
// ([CompareSequential]).
func Compare(pairs []Pair, config CompareConfig) (Comparison, error) {
	return compare(pairs, config, false)
}

func compare(pairs []Pair, config CompareConfig, ratio bool) (Comparison, error) {
	comparison, sample, err := measure(pairs, config, ratio)
	if err != nil {
		return Comparison{}, err
	}
	if !config.WithoutMDE {
		comparison.MDE = sample.detectable(comparison, config)
	}
	return comparison, nil
}

// measure does everything but the detectable effect, which takes milliseconds.
func measure(pairs []Pair, config CompareConfig, ratio bool) (Comparison, *pairedSample, error) {
	config.Level = cmp.Or(config.Level, DefaultLevel)
	if err := checkOpenUnit("level", config.Level); err != nil {
		return Comparison{}, nil, err
	}
	sample, err := newPairedSample(pairs, ratio)
	if err != nil {
		return Comparison{}, nil, err
	}
	comparison := sample.describe()
	if sample.isSingleBinary() && config.Interval == "" {
		err = sample.compareByMcNemar(&comparison, config)
	} else {
		err = sample.compareByFlips(&comparison, config)
	}
	if err != nil {
		return Comparison{}, nil, err
	}
	if comparison.marginInterval, err = sample.marginInterval(comparison, config); err != nil {
		return Comparison{}, nil, err
	}
	if comparison.Unpaired > 0 {
		comparison.Warnings = append(comparison.Warnings,
			fmt.Sprintf("%d task(s) with runs of one arm only left out", comparison.Unpaired))
	}
	return comparison, sample, nil
}

func (s *pairedSample) describe() Comparison {
	est, variance := moments(s.differences)
	comparison := Comparison{
		Est:           est,
		SD:            math.Sqrt(variance),
		P:             1,
		Tasks:         len(s.differences),
		Clusters:      len(s.clusterSums()),
		Runs:          s.runs,
		Unpaired:      s.unpaired,
		CandidateMean: s.candidateMean,
		BaselineMean:  s.baselineMean,
		Ratio:         s.ratio,
	}
	for _, difference := range s.differences {
		switch {
		case difference > 0:
			comparison.Wins++
		case difference < 0:
			comparison.Losses++
		default:
			comparison.Ties++
		}
	}
	return comparison
}

func (s *pairedSample) compareByMcNemar(comparison *Comparison, config CompareConfig) error {
	comparison.Method = MethodMcNemar
	comparison.Exact = true
	comparison.Reason = "one run per arm and task, every outcome 0 or 1"
	test, err := McNemar(comparison.Wins, comparison.Losses)
	if err != nil {
		return err
	}
	comparison.P, comparison.PMid = test.P, &test.PMid
	interval, err := BonettPrice(comparison.Wins, comparison.Losses, comparison.Tasks, config.Level)
	if err != nil {
		return err
	}
	comparison.Interval, comparison.SE, comparison.boundedInterval = &interval, interval.SE, &interval
	return nil
}

func (s *pairedSample) compareByFlips(comparison *Comparison, config CompareConfig) error {
	comparison.Method, comparison.Reason = MethodSignFlip, "several runs per task, or outcomes other than 0 and 1"
	switch {
	case s.isStratified():
		comparison.Method, comparison.Reason = MethodStratifiedFlip, "tasks are stratified"
	case s.isClustered():
		comparison.Method, comparison.Reason = MethodClusterSignFlip, "tasks share clusters"
	}
	flips, err := signFlip(s.clusterSums(), signFlipConfig{
		Replicates: config.Replicates,
		Seed:       config.Seed,
		Thresholds: config.thresholds(),
	})
	if err != nil {
		return err
	}
	comparison.P, comparison.Exact, comparison.Draws = flips.P, flips.Draws == 0, flips.Draws
	if flips.Draws > 0 {
		comparison.Seed = config.Seed
	}
	return s.attachInterval(comparison, config)
}

func (s *pairedSample) attachInterval(comparison *Comparison, config CompareConfig) error {
	if err := s.checkForcedInterval(config.Interval); err != nil {
		return err
	}
	if s.bounded {
		bounded := s.addTwo(config.Level)
		comparison.boundedInterval = &bounded
	}
	se, df := s.standardError()
	if se <= 1e-12*math.Max(1, math.Abs(comparison.Est)) || df < 1 {
		s.attachDegenerate(comparison)
		return nil
	}
	t := comparison.Est / se
	pt := studentTail(t, df)
	comparison.SE, comparison.T, comparison.PT = se, &t, &pt
	method := cmp.Or(config.Interval, s.intervalMethod())
	if method != MethodBCa && method != MethodPercentile {
		interval := symmetric(comparison.Est, se, studentQuantile(config.Level, df), config.Level, s.studentName())
		comparison.Interval = &interval
	} else {
		interval, err := bootstrapMean(s.differences, bootstrapConfig{
			Level:      config.Level,
			Seed:       config.Seed,
			Replicates: config.Replicates,
			Method:     method,
		})
		if err != nil {
			return err
		}
		comparison.Interval = &interval
	}
	if s.bounded {
		limited := comparison.Interval.cutTo(-1)
		comparison.Interval = &limited
	}
	return nil
}

func (s *pairedSample) checkForcedInterval(method string) error {
	switch method {
	case "", MethodT:
		return nil
	case MethodBCa, MethodPercentile:
		if s.isClustered() || s.isStratified() || len(s.differences) < minBootstrapTasks {
			return fmt.Errorf("a bootstrap interval needs at least %d tasks without clusters and strata",
				minBootstrapTasks)
		}
		return nil
	}
	return fmt.Errorf("interval must be %s, %s or %s, not %q", MethodT, MethodBCa, MethodPercentile, method)
}

// attachDegenerate handles samples whose spread is not visible: all differences equal, or a single
// task.
func (s *pairedSample) attachDegenerate(comparison *Comparison) {
	if !s.bounded {
		comparison.Warnings = append(comparison.Warnings, "the differences have zero variance: no confidence "+
			"interval can be computed")
		return
	}
	comparison.Interval, comparison.SE = comparison.boundedInterval, comparison.boundedInterval.SE
	comparison.Warnings = append(comparison.Warnings,
		"the differences have zero variance: the confidence interval is the one for bounded outcomes")
}

// intervalMethod returns the part of the rule that picks the interval of a sign-flip comparison.
func (s *pairedSample) intervalMethod() string {
	if s.bounded || s.isClustered() || s.isStratified() || len(s.differences) < skewBootstrapTasks ||
		math.Abs(skewness(s.differences)) <= 1 {
		return s.studentName()
	}
	return MethodBCa
}

func (s *pairedSample) studentName() string {
	switch {
	case s.isStratified():
		return MethodStratifiedT
	case s.isClustered():
		return MethodClusterT
	}
	return MethodT
}

func skewness(values []float64) float64 {
	mean, variance := moments(values)
	if variance == 0 {
		return 0
	}
	var cubes float64
	for _, value := range values {
		gap := value - mean
		cubes += gap * gap * gap
	}
	return cubes / float64(len(values)) / math.Pow(variance, 1.5)
}

// CompareRatio measures the ratio of two arms in a positive quantity such as cost or time, with the
// task as the unit.
//
// Formula: d_i = mean of ln(candidate) − mean of ln(baseline) per task, then as in [Compare];
// exp(Est) is the ratio of geometric means.
//
// Use it for dollars, tokens, seconds and turns; [Comparison.RatioInterval] gives the limits as
// ratios. Coverage is at least 94% from 10 tasks on for quantities that spread like a lognormal.
//
// Do not use it with zeros or negative values, nor for totals ("what will the bill be"), which are
// about arithmetic means.
func CompareRatio(pairs []Pair, config CompareConfig) (Comparison, error) {
	return compare(pairs, config, true)
}

// RatioInterval returns the effect of a ratio comparison as a ratio: 0.8 means the candidate needs
// a fifth less.
func (c Comparison) RatioInterval() (Interval, bool) {
	if !c.Ratio || c.Interval == nil {
		return Interval{Est: math.Exp(c.Est)}, false
	}
	interval := *c.Interval
	interval.Est, interval.Lo, interval.Hi = math.Exp(interval.Est), math.Exp(interval.Lo), math.Exp(interval.Hi)
	interval.SE = 0
	return interval, true
}

// CommonlySolved keeps, of a measured quantity, the passing runs of the tasks that both arms passed
// at least once. outcomes and measures list the same tasks and runs in the same order; a run passed
// when its outcome is 1.
//
// Formula: {(task, run) : outcome = 1, and both arms have such a run in the task}.
//
// Use it before [CompareRatio] beside the comparison over all tasks: an arm that gives up early
// looks cheap otherwise.
//
// Do not use it alone: the subset is chosen by the outcome, so it says nothing about tasks only one
// arm can solve.
func CommonlySolved(outcomes, measures []Pair) ([]Pair, error) {
	if len(outcomes) != len(measures) {
		return nil, fmt.Errorf("%d tasks with outcomes but %d with measures", len(outcomes), len(measures))
	}
	var common []Pair
	for i, outcome := range outcomes {
		measure := measures[i]
		if outcome.Task != measure.Task || len(outcome.Candidate) != len(measure.Candidate) ||
			len(outcome.Baseline) != len(measure.Baseline) {
			return nil, fmt.Errorf("task %d: outcomes of %q and measures of %q do not belong together", i+1,
				outcome.Task, measure.Task)
		}
		measure.Candidate = passingOnly(outcome.Candidate, measure.Candidate)
		measure.Baseline = passingOnly(outcome.Baseline, measure.Baseline)
		if measure.complete() {
			common = append(common, measure)
		}
	}
	return common, nil
}

func passingOnly(outcomes, measures []float64) []float64 {
	var kept []float64
	for i, outcome := range outcomes {
		if outcome == 1 {
			kept = append(kept, measures[i])
		}
	}
	return kept
}
