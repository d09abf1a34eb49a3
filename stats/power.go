package stats

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// DefaultPower is the chance to find an effect that is really there, where the caller gives none.
const DefaultPower = 0.8

// Design describes an experiment that is planned: how much the tasks and the runs vary, and how
// many there are.
type Design struct {
	// Between (ω²) is the variance over tasks of the true difference of the two arms.
	Between float64 `json:"between"`
	// WithinCandidate and WithinBaseline (σ²) are the mean variances of the runs within a task.
	WithinCandidate float64 `json:"withinCandidate"`
	WithinBaseline  float64 `json:"withinBaseline"`
	// RunsCandidate and RunsBaseline (K) are the repetitions per task; 0 means 1.
	RunsCandidate int `json:"runsCandidate"`
	RunsBaseline  int `json:"runsBaseline"`
	// Alpha and Power default to 0.05 (two-sided) and 0.8.
	Alpha float64 `json:"alpha"`
	Power float64 `json:"power"`
}

func (d Design) withDefaults() (Design, error) {
	d.Alpha, d.Power = cmp.Or(d.Alpha, DefaultAlpha), cmp.Or(d.Power, DefaultPower)
	d.RunsCandidate, d.RunsBaseline = max(1, d.RunsCandidate), max(1, d.RunsBaseline)
	if err := cmp.Or(
		checkNotNegative("variance between tasks", d.Between),
		checkNotNegative("variance within tasks of the candidate", d.WithinCandidate),
		checkNotNegative("variance within tasks of the baseline", d.WithinBaseline),
		checkOpenUnit("alpha", d.Alpha),
		checkOpenUnit("power", d.Power),
	); err != nil {
		return d, err
	}
	if d.Power <= d.Alpha {
		return d, fmt.Errorf("power must be above alpha (%v), which a test reaches without any effect, not %v", d.Alpha,
			d.Power)
	}
	if d.Between+d.WithinCandidate+d.WithinBaseline == 0 {
		return d, fmt.Errorf("all variances are 0: nothing varies, so there is nothing to plan")
	}
	return d, nil
}

// perTask returns the variance of the difference observed on one task.
func (d Design) perTask() float64 {
	return d.Between + d.WithinCandidate/float64(d.RunsCandidate) + d.WithinBaseline/float64(d.RunsBaseline)
}

// steps returns the steps of the lattice of differences of pass rates; 0 if they are practically
// continuous.
func (d Design) steps() int {
	steps := leastCommonMultiple(d.RunsCandidate, d.RunsBaseline)
	if steps > maxSteps || d.perTask() > 1 {
		return 0
	}
	return steps
}

func leastCommonMultiple(a, b int) int {
	divisor, rest := a, b
	for rest != 0 {
		divisor, rest = rest, divisor%rest
	}
	return a / divisor * b
}

// power returns the chance that the claim rule finds a difference of effect.
func (d Design) power(effect float64, tasks int) float64 {
	effect = math.Abs(effect)
	if d.steps() > 0 && effect < 1 && tasks <= maxSimulatedTasks {
		return d.lattice(effect).power(tasks, d.Alpha, simulatedExperiments)
	}
	if tasks < 2 {
		return 0
	}
	return studentPower(effect/math.Sqrt(d.perTask()/float64(tasks)), float64(tasks-1), d.Alpha)
}

// lattice returns the distribution of the difference of one task. How it is skewed depends on the
// true rates: arms that agree on most tasks and differ much on some are distinguished more easily
// than arms that differ a little on all. Where nothing is known of the runs within tasks, only the
// variance of the difference counts.
func (d Design) lattice(effect float64) *lattice {
	if d.WithinCandidate > 0 && d.WithinBaseline > 0 {
		if possible, ok := newRates(effect, d); ok {
			return possible.lattice(d.RunsCandidate, d.RunsBaseline)
		}
	}
	return newLattice(d.steps(), nil, effect, d.perTask())
}

const (
	// simulatedExperiments make the error of a simulated power about 0.6 points.
	simulatedExperiments = 4000
	// maxSimulatedTasks is the size beyond which Student's test and the one used agree.
	maxSimulatedTasks = 400
	// undetectable is the detectable effect where no difference of pass rates is found often
	// enough.
	undetectable = 2
)

// studentPower returns the power of Student's two-sided test with df degrees of freedom when the
// effect is ratio standard errors (Johnson and Welch's approximation of the noncentral t
// distribution).
func studentPower(ratio, df, alpha float64) float64 {
	t := studentQuantile(1-alpha, df)
	spread := math.Sqrt(1 + t*t/(2*df))
	bias := t * (1 - 1/(4*df))
	return distuv.UnitNormal.CDF((ratio-bias)/spread) + distuv.UnitNormal.CDF((-ratio-bias)/spread)
}

func (d Design) quantiles() float64 {
	return distuv.UnitNormal.Quantile(1-d.Alpha/2) + distuv.UnitNormal.Quantile(d.Power)
}

// approximateTasks is n = (z_{α/2} + z_β)²·(ω² + σ_A²/K_A + σ_B²/K_B)/δ², approximateEffect its
// inverse, approximateRuns the same solved for K. They promise too much for few tasks; the search
// begins there.
func (d Design) approximateTasks(effect float64) float64 {
	z := d.quantiles()
	return z * z * d.perTask() / (effect * effect)
}

func (d Design) approximateEffect(tasks int) float64 {
	return d.quantiles() * math.Sqrt(d.perTask()/float64(tasks))
}

func (d Design) approximateRuns(effect float64, tasks int) float64 {
	z := d.quantiles()
	room := float64(tasks)*effect*effect/(z*z) - d.Between
	if room <= 0 {
		return math.Inf(1)
	}
	return math.Max(1, (d.WithinCandidate+d.WithinBaseline)/room)
}

// TasksNeeded returns the number of tasks that finds a difference of effect with the power of the
// design.
//
// Formula: the least n whose [PowerOf] reaches the power; the search begins at n = (z_{α/2} +
// z_β)²·(ω² + σ_A²/K_A + σ_B²/K_B)/δ².
//
// Use it to plan. The variances come from a pilot ([VarianceComponents]) or from experience: 0.10
// between and 0.12 within are usual for pass rates.
//
// Do not use it to justify fewer than [MinClaimTasks] tasks: nothing is claimed from them.
func TasksNeeded(effect float64, design Design) (float64, error) {
	design, err := design.checked(effect, 1)
	if err != nil {
		return 0, err
	}
	start := design.approximateTasks(effect)
	if start > maxSimulatedTasks {
		return math.Ceil(start - 1e-9), nil
	}
	low, high := 1, max(2, int(math.Ceil(start)))
	for design.power(effect, high) < design.Power {
		low, high = high, high+max(1, high/5)
	}
	for high-low > 1 {
		if middle := (low + high) / 2; design.power(effect, middle) < design.Power {
			low = middle
		} else {
			high = middle
		}
	}
	return float64(high), nil
}

// RunsNeeded returns the number of repetitions per arm and task that finds a difference of effect
// with so many tasks.
//
// Formula: the least K whose [PowerOf] reaches the power; +Inf when the tasks alone vary too much,
// which is when n·δ²/(z_{α/2} + z_β)² ≤ ω².
//
// Use it when no more tasks are available.
//
// Do not use it to save tasks: repetitions do not lower ω², and from K ≈ σ²/ω² on they buy next to
// nothing.
func RunsNeeded(effect float64, tasks int, design Design) (float64, error) {
	design, err := design.checked(effect, tasks)
	if err != nil {
		return 0, err
	}
	start := design.approximateRuns(effect, tasks)
	enough := func(runs int) bool {
		design.RunsCandidate, design.RunsBaseline = runs, runs
		return design.power(effect, tasks) >= design.Power
	}
	if start > maxPlannedRuns {
		return math.Ceil(start), nil
	}
	if !enough(maxPlannedRuns) {
		return math.Inf(1), nil
	}
	low, high := 0, maxPlannedRuns
	for high-low > 1 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return float64(high), nil
}

// MinimumDetectableEffect returns the smallest true difference that so many tasks find with the
// power of the design; a number above 1 where no difference of pass rates is found that often.
//
// Formula: the least δ whose [PowerOf] reaches the power; the search begins at (z_{α/2} +
// z_β)·√((ω² + σ_A²/K_A + σ_B²/K_B)/n).
//
// Use it in every report: "not proven" means little without it.
//
// Do not use it as the effect that was found, nor plug the observed effect back in.
func MinimumDetectableEffect(tasks int, design Design) (float64, error) {
	design, err := design.checked(1, tasks)
	if err != nil {
		return 0, err
	}
	most := math.Inf(1)
	if design.steps() > 0 {
		most = 1
	}
	return leastEffect(design.approximateEffect(tasks), most, design.Power,
		func(effect float64) float64 { return design.power(effect, tasks) }), nil
}

// leastEffect returns the smallest effect whose power reaches the target; undetectable where none
// below most does.
func leastEffect(start, most, target float64, power func(effect float64) float64) float64 {
	low, high := 0.0, math.Min(start, 0.99*most)
	for power(high) < target {
		if high >= 0.99*most || high > 1e3*start {
			return undetectable
		}
		low, high = high, math.Min(1.25*high, 0.99*most)
	}
	for high-low > 0.01*high {
		if middle := (low + high) / 2; power(middle) < target {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// PowerOf returns the chance that an experiment with so many tasks finds a true difference of
// effect, which is that [Decide] claims it.
//
// Formula: for up to 400 tasks the share of 4,000 simulated experiments in which the rule of
// [Compare] and [Decide] claims the difference, the true rates of both arms on a task being drawn
// from the least committed distribution that has δ, ω², σ_A² and σ_B², and the runs from the rates;
// where there are no such rates, the differences of tasks from the least committed distribution
// with mean δ and variance ω² + σ_A²/K_A + σ_B²/K_B on the multiples of 1/K; beyond, and for
// variances above 1, the power of Student's test. The Power of the design is ignored.
//
// Use it before an experiment, with an effect that would matter. What is announced is found in 80 ±
// 3 of 100 experiments at 10 to 60 tasks and 1 to 5 runs, however the tasks differ.
//
// Do not use it afterwards with the effect that was observed: that is only the p-value again.
func PowerOf(effect float64, tasks int, design Design) (float64, error) {
	design, err := design.checked(effect, tasks)
	if err != nil {
		return 0, err
	}
	return design.power(effect, tasks), nil
}

// checked returns the design with its defaults, where an effect can be asked about on so many
// tasks.
func (d Design) checked(effect float64, tasks int) (Design, error) {
	d, err := d.withDefaults()
	if err == nil {
		err = checkFinite("effect", effect)
	}
	switch {
	case err != nil:
		return d, err
	case effect == 0:
		return d, errors.New("effect is 0: no experiment can find a difference that is not there")
	case tasks < 1:
		return d, fmt.Errorf("tasks must be at least 1, not %d", tasks)
	}
	return d, nil
}

// VarianceComponents estimates the variances of a [Design] from a pilot with at least two tasks;
// runs within a task need repetitions on at least one task of each arm, or count as 0.
//
// Formula: σ² = mean over tasks of the unbiased variance of the runs; ω² = s²(d) − mean over tasks
// of (σ_A,i²/K_A + σ_B,i²/K_B), clamped at 0. The unclamped value is returned as well.
//
// Use it on earlier results of the same kind of task.
//
// Do not trust ω² from under 20 tasks or a single run per task: it then contains the noise of the
// runs.
func VarianceComponents(pairs []Pair) (design Design, betweenUnclamped float64, err error) {
	sample, err := newPairedSample(pairs, false)
	if err != nil {
		return Design{}, 0, err
	}
	if len(sample.differences) < 2 {
		return Design{}, 0, fmt.Errorf("between-task variance needs at least 2 tasks, not 1")
	}
	var candidate, baseline pooledVariance
	for _, pair := range pairs {
		if pair.complete() {
			candidate.add(pair.Candidate)
			baseline.add(pair.Baseline)
		}
	}
	_, observed := moments(sample.differences)
	betweenUnclamped = observed - candidate.perMean() - baseline.perMean()
	design = Design{
		Between:         math.Max(0, betweenUnclamped),
		WithinCandidate: candidate.perRun(),
		WithinBaseline:  baseline.perRun(),
		RunsCandidate:   candidate.typicalRuns(),
		RunsBaseline:    baseline.typicalRuns(),
		Alpha:           DefaultAlpha,
		Power:           DefaultPower,
	}
	return design, betweenUnclamped, nil
}

// pooledVariance averages the variance within tasks over the tasks that have repetitions.
type pooledVariance struct {
	variances, ofMeans, repeated, runs, tasks float64
}

func (p *pooledVariance) add(runs []float64) {
	p.tasks++
	p.runs += float64(len(runs))
	if len(runs) < 2 {
		return
	}
	_, variance := moments(runs)
	p.variances += variance
	p.ofMeans += variance / float64(len(runs))
	p.repeated++
}

func (p *pooledVariance) perRun() float64 { return p.variances / math.Max(1, p.repeated) }

func (p *pooledVariance) perMean() float64 { return p.ofMeans / math.Max(1, p.repeated) }

func (p *pooledVariance) typicalRuns() int { return int(math.Round(p.runs / p.tasks)) }
