package versus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// compare compares two arms: their pass rates, and the panel's verdicts in each dimension. The
// first is the candidate of package report, which compares B against A: what its documents call B
// is the A of a head to head.
func (b *builder) compare(pair *Pair, first, second *arm, config report.CompareConfig, claims *report.Claims) error {
	compared, err := report.NewPair(second.Group, first.Group, config)
	if err != nil && !errors.Is(err, stats.ErrNoData) {
		return err
	}
	*pair = Pair{
		A:         first.Name,
		B:         second.Name,
		Pairwise:  []judge.PairwiseVerdict{},
		Claim:     claimInsufficient,
		Obstacles: []string{},
		Machines:  compared.Machines,
		Withheld:  compared.Withheld,
		Same:      compared.Same,
		Requests:  compared.Requests,
		Treatment: compared.Treatment,
	}
	if err != nil {
		pair.Obstacles = append(pair.Obstacles, "no task has verdicts on both arms")
		compared.Config = stats.DecideConfig{Withheld: compared.Config.Withheld}
	} else {
		compared.Config.IntegrityFlags = first.suspicions() + second.suspicions()
		claims.Add(compared.Comparison, compared.Config, pair.settle)
	}
	if err := b.compareDimensions(pair, first, second, config, compared.Config, claims); err != nil {
		return err
	}
	pair.Cost, pair.Time, pair.Turns = report.Ratios(second.Group, first.Group, config)
	b.sideBySide(pair, first, second)
	return b.swaps(pair, first, second)
}

// settle takes over the decision about the pass rates.
func (p *Pair) settle(decision *stats.Decision) {
	p.Diff, p.MDE, p.EValue = difference(decision), &decision.MDE, decision.EValue
	p.Claim, p.Sentence, p.Obstacles = claimOf(decision), decision.Sentence, orEmpty(decision.Obstacles)
}

func difference(decision *stats.Decision) *Difference {
	return &Difference{
		Est:    decision.Effect,
		Lo:     decision.Lo,
		Hi:     decision.Hi,
		P:      decision.P,
		PAdj:   decision.PAdj,
		Method: decision.Method,
		NTasks: decision.NTasks,
	}
}

func claimOf(decision *stats.Decision) string {
	switch decision.Claim {
	case stats.Improved:
		return claimA
	case stats.Regressed:
		return claimB
	case stats.Insufficient:
		return claimInsufficient
	}
	return claimInconclusive
}

// suspicions counts the unresolved critical flags of an arm, and its attempts that cannot be
// examined because their files are missing or changed.
func (a *arm) suspicions() int {
	n := 0
	for _, cell := range a.runs {
		n += cell.critical()
		if cell.Problem != "" {
			n++
		}
	}
	return n
}

// compareDimensions compares what every planned run counts in the dimensions that the panel judged.
// Only a calibrated panel can support a claim.
func (b *builder) compareDimensions(pair *Pair, first, second *arm, config report.CompareConfig,
	decide stats.DecideConfig, claims *report.Claims,
) error {
	pair.Dimensions = make([]DimensionPair, 0, len(evidence.Dimensions())) // settle keeps pointers into it
	for _, dimension := range evidence.Dimensions() {
		if !anyAsked(dimension, first, second) {
			continue
		}
		var outcomes [2][]report.Outcome // the baseline's, the candidate's
		outcomes[0], outcomes[1] = report.Alongside(second.in(dimension), first.in(dimension))
		settings := stats.CompareConfig{Seed: config.Seed, Tests: config.Tests}
		if config.Alpha > 0 {
			settings.Level = 1 - config.Alpha
		}
		settings.WithoutMDE = true // it claims nothing
		observed, err := stats.Compare(report.PairOutcomes(outcomes[0], outcomes[1], nil), settings)
		if errors.Is(err, stats.ErrNoData) {
			continue
		}
		if err != nil {
			return fmt.Errorf("compare %s and %s in %s: %w", pair.A, pair.B, dimension, err)
		}
		decide.Measure.Name = dimension
		decide.Baseline, decide.Candidate = excluded(outcomes[0]), excluded(outcomes[1])
		pair.Dimensions = append(pair.Dimensions, DimensionPair{
			Dimension: dimension,
			NTasks:    observed.Tasks,
			Observed:  observedDifference(&observed),
			Undecided: decide.Baseline.Excluded + decide.Candidate.Excluded,
			Status:    stats.StatusUncalibrated,
			Claim:     claimInconclusive,
			Obstacles: []string{"the panel is not calibrated: its errors are in the difference"},
		})
		into := &pair.Dimensions[len(pair.Dimensions)-1]
		known := b.known[dimension]
		if known == nil {
			continue
		}
		if into.Status = known.Status; into.Status != stats.StatusOK {
			into.Obstacles = []string{"the calibration is not valid: " + into.Status}
			continue
		}
		arms := [2]string{first.Provenance.Arm, second.Provenance.Arm}
		if err := into.correct(arms, outcomes, known, settings, decide, claims); err != nil {
			return fmt.Errorf("compare %s and %s in %s: %w", pair.A, pair.B, dimension, err)
		}
	}
	return nil
}

func observedDifference(c *stats.Comparison) Difference {
	d := Difference{
		Est:    c.Est,
		P:      c.P,
		PAdj:   c.P,
		Method: c.Method,
		NTasks: c.Tasks,
	}
	if c.Interval != nil {
		d.Lo, d.Hi = &c.Interval.Lo, &c.Interval.Hi
	}
	return d
}

// correct measures the difference behind the panel's errors. Where the labels show that it errs
// differently on the arms, each arm has its own error rates; where they merely do not show it, a
// claim must hold with rates per arm as well, because a judge that is kinder to one arm fakes a
// difference. It must also hold for all outcomes of runs that have none.
func (d *DimensionPair) correct(arms [2]string, outcomes [2][]report.Outcome, known *judge.Calibration,
	settings stats.CompareConfig, decide stats.DecideConfig, claims *report.Claims,
) error {
	first, second := known.Own(arms[0]), known.Own(arms[1])
	perArm := known.Homogeneity != nil && known.Homogeneity.PerAgent
	labelled := first.M1 > 0 && first.M0 > 0 && second.M1 > 0 && second.M0 > 0
	undecided := undecidedText(decide.Baseline, decide.Candidate)
	decide.WorstCases, decide.Unsure = nil, undecided
	fills := []*[2]float64{nil}
	if undecided != "" {
		fills = append(fills, &[2]float64{1, 0}, &[2]float64{0, 1})
	}
	var comparison stats.Comparison
	for i, fill := range fills {
		pairs := judgedPairs(outcomes[0], outcomes[1], fill)
		common, err := stats.CompareWithFacts(pairs, known.Pooled, known.Pooled, false, settings)
		if err != nil {
			return err
		}
		worst := []stats.Comparison{common}
		if labelled {
			own, err := stats.CompareWithFacts(pairs, first, second, true, settings)
			switch {
			case err != nil && perArm:
				d.Status, d.Obstacles = stats.StatusUninformative, []string{err.Error()}
				return nil
			case err != nil:
			case perArm:
				worst, d.PerAgent = []stats.Comparison{own}, true
			default:
				worst = append(worst, own)
			}
		}
		if i == 0 {
			comparison, worst = worst[0], worst[1:]
			if len(worst) > 0 {
				decide.Unsure = strings.TrimPrefix(undecided+", or a judge that errs differently on the two arms,",
					", or ")
			}
		}
		decide.WorstCases = append(decide.WorstCases, worst...)
	}
	claims.Add(comparison, decide, func(decision *stats.Decision) {
		d.Corrected, d.Claim, d.Obstacles = difference(decision), claimOf(decision), orEmpty(decision.Obstacles)
		if !labelled {
			d.Claim = claimInconclusive
			d.Obstacles = append(d.Obstacles, "an arm lacks labels of both kinds: the panel may be kinder to it")
		}
	})
	return nil
}
