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
		A:           first.Name,
		B:           second.Name,
		Pairwise:    []judge.PairwiseVerdict{},
		Claim:       claimInsufficient,
		Obstacles:   []string{},
		Machines:    compared.Machines,
		Withheld:    compared.Withheld,
		Remark:      compared.Remark,
		Same:        compared.Same,
		Observed:    compared.Config.Observed,
		Requests:    compared.Requests,
		Treatment:   compared.Treatment,
		Retries:     report.CompareRetries(first.Group, second.Group),
		FailedCalls: report.CompareFailedCalls(first.Group, second.Group),
	}
	for _, warning := range compared.Warnings() {
		b.report.Warnings = append(b.report.Warnings, pair.A+", "+pair.B+": "+warning)
	}
	b.report.Warnings = compared.AddAllowed(b.report.Warnings)
	if err != nil {
		pair.Obstacles = append([]string{"no task has verdicts on both arms"}, compared.Config.Withheld...)
		compared.Config = stats.DecideConfig{}
	} else {
		claims.Add(compared.Comparison, compared.Config, func(decision *stats.Decision) {
			pair.settle(decision)
			pair.Withheld = compared.Decided(decision)
		})
	}
	ofFirst, ofSecond := report.Beside(first.Group, second.Group)
	first, second = &arm{Group: ofFirst, runs: first.runs}, &arm{Group: ofSecond, runs: second.runs}
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
	if decision.Claim == stats.Equivalent { // no margin was planned for dimensions
		p.Claim = claimEquivalent
	}
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
		outcomes[0], outcomes[1], _ = report.Alongside(second.in(dimension), first.in(dimension))
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
		into := DimensionPair{
			Dimension: dimension,
			NTasks:    observed.Tasks,
			Observed:  observedDifference(&observed),
			Undecided: decide.Baseline.Excluded + decide.Candidate.Excluded,
			Status:    stats.StatusUncalibrated,
			Claim:     claimInconclusive,
			allow:     config.Allow,
		}
		known := b.known[dimension]
		rates := [2]stats.Calibration{}
		if known != nil {
			into.Status = known.Status
			rates = [2]stats.Calibration{known.Own(first.Provenance.Arm), known.Own(second.Provenance.Arm)}
		}
		into.basis = report.Basis{
			Groups:     []*report.Group{second.Group, first.Group},
			Tasks:      observed.Tasks,
			Exclusions: stats.Exclusions{Baseline: decide.Baseline, Candidate: decide.Candidate},
			Panel:      &report.Panel{Status: into.Status, Labelled: labelled(rates)},
		}
		into.Withheld, _ = report.Withhold(config.Allow, &into.basis)
		decide.Withheld = report.Sentences(into.Withheld)
		into.Obstacles = orEmpty(decide.Withheld)
		pair.Dimensions = append(pair.Dimensions, into)
		if into.Status != stats.StatusOK {
			continue
		}
		kept := &pair.Dimensions[len(pair.Dimensions)-1]
		if err := kept.correct(rates, outcomes, known, settings, decide, claims); err != nil {
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
func (d *DimensionPair) correct(rates [2]stats.Calibration, outcomes [2][]report.Outcome, known *judge.Calibration,
	settings stats.CompareConfig, decide stats.DecideConfig, claims *report.Claims,
) error {
	perArm := known.Homogeneity != nil && known.Homogeneity.PerAgent
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
		if labelled(rates) {
			own, err := stats.CompareWithFacts(pairs, rates[0], rates[1], true, settings)
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
		d.basis.Decision = decision
		d.Withheld, _ = report.Withhold(d.allow, &d.basis)
	})
	return nil
}

// labelled reports whether people labelled passed and failed runs of both arms.
func labelled(rates [2]stats.Calibration) bool {
	return rates[0].M1 > 0 && rates[0].M0 > 0 && rates[1].M1 > 0 && rates[1].M0 > 0
}
