package stats

import (
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
	d.Alpha, d.Power = orDefault(d.Alpha, DefaultAlpha), orDefault(d.Power, DefaultPower)
	d.RunsCandidate, d.RunsBaseline = max(d.RunsCandidate, 0), max(d.RunsBaseline, 0)
	if d.RunsCandidate == 0 {
		d.RunsCandidate = 1
	}
	if d.RunsBaseline == 0 {
		d.RunsBaseline = 1
	}
	for _, check := range []error{
		checkNotNegative("variance between tasks", d.Between),
		checkNotNegative("variance within tasks of the candidate", d.WithinCandidate),
		checkNotNegative("variance within tasks of the baseline", d.WithinBaseline),
		checkOpenUnit("alpha", d.Alpha), checkOpenUnit("power", d.Power),
	} {
		if check != nil {
			return d, check
		}
	}
	if d.Power <= d.Alpha {
		return d, fmt.Errorf("power is %v, want more than alpha (%v), which a test reaches without any effect", d.Power,
			d.Alpha)
	}
	if d.Between+d.WithinCandidate+d.WithinBaseline == 0 {
		return d, fmt.Errorf("all variances are 0: nothing varies, so there is nothing to plan")
	}
	return d, nil
}

// perTask is the variance of the difference observed on one task.
func (d Design) perTask() float64 {
	return d.Between + d.WithinCandidate/float64(d.RunsCandidate) + d.WithinBaseline/float64(d.RunsBaseline)
}

func (d Design) quantiles() float64 {
	return distuv.UnitNormal.Quantile(1-d.Alpha/2) + distuv.UnitNormal.Quantile(d.Power)
}

// TasksNeeded is the number of tasks, not rounded, that finds a difference of effect with the power
// of the design.
//
// Formula: n = (z_{α/2} + z_β)²·(ω² + σ_A²/K_A + σ_B²/K_B)/δ².
//
// Use it to plan; round up. The variances come from a pilot ([VarianceComponents]) or from
// experience: 0.10 between and 0.12 within are usual for pass rates.
//
// Do not use it for fewer than about 15 tasks, where the normal quantiles promise a little too
// much.
func TasksNeeded(effect float64, design Design) (float64, error) {
	design, err := design.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkEffect(effect); err != nil {
		return 0, err
	}
	z := design.quantiles()
	return z * z * design.perTask() / (effect * effect), nil
}

// RunsNeeded is the number of repetitions per arm and task, not rounded, that finds a difference of
// effect with so many tasks.
//
// Formula: K = (σ_A² + σ_B²)/(n·δ²/(z_{α/2} + z_β)² − ω²); +Inf when the tasks alone vary too much.
//
// Use it when no more tasks are to be had.
//
// Do not use it to save tasks: repetitions do not lower ω², and from K ≈ σ²/ω² on they buy next to
// nothing.
func RunsNeeded(effect float64, tasks int, design Design) (float64, error) {
	design, err := design.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkEffect(effect); err != nil {
		return 0, err
	}
	if tasks < 1 {
		return 0, fmt.Errorf("tasks is %d, want at least 1", tasks)
	}
	z := design.quantiles()
	room := float64(tasks)*effect*effect/(z*z) - design.Between
	if room <= 0 {
		return math.Inf(1), nil
	}
	return math.Max(1, (design.WithinCandidate+design.WithinBaseline)/room), nil
}

// MinimumDetectableEffect is the smallest true difference that so many tasks find with the power of
// the design.
//
// Formula: MDE = (z_{α/2} + z_β)·√((ω² + σ_A²/K_A + σ_B²/K_B)/n).
//
// Use it in every report: "not proven" means little without it.
//
// Do not use it as the effect that was found, nor plug the observed effect back in.
func MinimumDetectableEffect(tasks int, design Design) (float64, error) {
	design, err := design.withDefaults()
	if err != nil {
		return 0, err
	}
	if tasks < 1 {
		return 0, fmt.Errorf("tasks is %d, want at least 1", tasks)
	}
	return design.quantiles() * math.Sqrt(design.perTask()/float64(tasks)), nil
}

func detectableBy(se, alpha, power float64) float64 {
	return (distuv.UnitNormal.Quantile(1-alpha/2) + distuv.UnitNormal.Quantile(power)) * se
}

// PowerOf is the chance that an experiment with so many tasks finds a true difference of effect.
//
// Formula: Φ(|δ|/SE − z_{α/2}) + Φ(−|δ|/SE − z_{α/2}), SE = √((ω² + σ_A²/K_A + σ_B²/K_B)/n); the
// Power of the design is ignored.
//
// Use it before an experiment, with an effect that would matter.
//
// Do not use it afterwards with the effect that was observed: that is only the p-value again.
func PowerOf(effect float64, tasks int, design Design) (float64, error) {
	design, err := design.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := checkEffect(effect); err != nil {
		return 0, err
	}
	if tasks < 1 {
		return 0, fmt.Errorf("tasks is %d, want at least 1", tasks)
	}
	ratio := math.Abs(effect) / math.Sqrt(design.perTask()/float64(tasks))
	z := distuv.UnitNormal.Quantile(1 - design.Alpha/2)
	return distuv.UnitNormal.CDF(ratio-z) + distuv.UnitNormal.CDF(-ratio-z), nil
}

func checkEffect(effect float64) error {
	if err := checkFinite("effect", effect); err != nil {
		return err
	}
	if effect == 0 {
		return fmt.Errorf("effect is 0: no experiment can find a difference that is not there")
	}
	return nil
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
		return Design{}, 0, fmt.Errorf("one task shows no variance between tasks, want at least 2")
	}
	var candidate, baseline pooledVariance
	for _, pair := range pairs {
		if len(pair.Candidate) == 0 || len(pair.Baseline) == 0 {
			continue
		}
		candidate.add(pair.Candidate)
		baseline.add(pair.Baseline)
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

func (p *pooledVariance) perRun() float64 {
	if p.repeated == 0 {
		return 0
	}
	return p.variances / p.repeated
}

func (p *pooledVariance) perMean() float64 {
	if p.repeated == 0 {
		return 0
	}
	return p.ofMeans / p.repeated
}

func (p *pooledVariance) typicalRuns() int { return int(math.Round(p.runs / p.tasks)) }
