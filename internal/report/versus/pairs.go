package versus

import (
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// family collects everything that the report may claim, so that the chance of any false claim among
// them stays below alpha.
type family struct {
	comparisons []stats.Comparison
	configs     []stats.DecideConfig
	// settle receives each decision.
	settle []func(*stats.Decision)
}

func (f *family) add(comparison stats.Comparison, config stats.DecideConfig, settle func(*stats.Decision)) {
	f.comparisons = append(f.comparisons, comparison)
	f.configs = append(f.configs, config)
	f.settle = append(f.settle, settle)
}

func (f *family) decide() error {
	if len(f.comparisons) == 0 {
		return nil
	}
	decisions, err := stats.DecideFamily(f.comparisons, f.configs)
	if err != nil {
		return err
	}
	for i := range decisions {
		f.settle[i](&decisions[i])
	}
	return nil
}

// compareAll compares every two arms: their pass rates, and the panel's verdicts in each dimension.
func (b *builder) compareAll() error {
	var pairs [][2]int
	for i := range b.groups {
		for j := i + 1; j < len(b.groups); j++ {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return b.comparePairs(pairs)
}

// calibration holds what people's labels say about the panel in one dimension.
type calibration struct {
	id     string
	status string
	pooled stats.Calibration
	// perArm are the panel's error rates on each arm; perAgent says that they differ.
	perArm   map[string]stats.Calibration
	perAgent bool
}

// calibrated counts the dimensions in which something may be claimed.
func (b *builder) calibrated() int {
	n := 0
	for _, c := range b.known {
		if c.status == stats.StatusOK {
			n++
		}
	}
	return n
}

func (b *builder) compare(pair *Pair, i, j int, config report.CompareConfig, tests *family) error {
	first, second := b.groups[i], b.groups[j]
	*pair = Pair{
		A:          first.Name,
		B:          second.Name,
		Dimensions: []DimensionPair{},
		Pairwise:   []judge.PairwiseVerdict{},
		Claim:      claimInsufficient,
		Obstacles:  []string{},
		Machines:   report.CompareMachines(first, second),
		Same:       report.SameArm(first, second),
		Requests:   report.CompareRequests(second, first),
		Treatment:  report.CompareTreatment(first, second),
	}
	pair.Withheld, _ = report.Withheld(config.Allow, first, second)
	// the first arm is the candidate of Prepare, so that differences are A minus B
	prepared, err := report.Prepare(second, first, config)
	switch {
	case errors.Is(err, stats.ErrNoData):
		pair.Obstacles = append(pair.Obstacles, "no task has verdicts on both arms")
		prepared = &report.Prepared{Config: stats.DecideConfig{Withheld: report.Sentences(pair.Withheld)}}
	case err != nil:
		return err
	default:
		prepared.Config.IntegrityFlags = b.suspicions(i) + b.suspicions(j)
		tests.add(prepared.Comparison, prepared.Config, pair.settle)
	}
	if err := b.compareDimensions(pair, i, j, config, prepared.Config, tests); err != nil {
		return err
	}
	pair.Cost, pair.Time, pair.Turns = report.Ratios(second, first, config)
	b.sideBySide(pair, i, j)
	return b.swaps(pair, i, j)
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
func (b *builder) suspicions(group int) int {
	n := 0
	for _, i := range b.members[group] {
		cell := &b.report.Cells[i]
		n += cell.critical()
		if cell.Problem != "" {
			n++
		}
	}
	return n
}

// compareDimensions compares the panel's verdicts, over the tasks in which both arms were judged.
// Only a calibrated panel can support a claim.
func (b *builder) compareDimensions(pair *Pair, i, j int, config report.CompareConfig, decide stats.DecideConfig,
	tests *family,
) error {
	pair.Dimensions = make([]DimensionPair, 0, len(evidence.Dimensions())) // settle keeps pointers into it
	for _, dimension := range evidence.Dimensions() {
		verdicts := b.verdicts(i, j, dimension)
		settings := stats.CompareConfig{Seed: config.Seed, Tests: config.Tests}
		if config.Alpha > 0 {
			settings.Level = 1 - config.Alpha
		}
		settings.WithoutMDE = true // it claims nothing
		observed, err := stats.Compare(verdicts, settings)
		if errors.Is(err, stats.ErrNoData) {
			continue
		}
		if err != nil {
			return fmt.Errorf("compare %s and %s in %s: %w", pair.A, pair.B, dimension, err)
		}
		pair.Dimensions = append(pair.Dimensions, DimensionPair{
			Dimension: dimension,
			NTasks:    observed.Tasks,
			Observed:  observedDifference(&observed),
			Status:    stats.StatusUncalibrated,
			Claim:     claimInconclusive,
			Obstacles: []string{"the panel is not calibrated: its errors are in the difference"},
		})
		into := &pair.Dimensions[len(pair.Dimensions)-1]
		known, labelled := b.known[dimension]
		if !labelled {
			continue
		}
		if into.Status = known.status; into.Status != stats.StatusOK {
			into.Obstacles = []string{"the calibration is not valid: " + into.Status}
			continue
		}
		decide.Measure.Name = dimension
		arms := [2]string{b.groups[i].Provenance.Arm, b.groups[j].Provenance.Arm}
		if err := into.correct(arms, verdicts, known, settings, decide, tests); err != nil {
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
// difference.
func (d *DimensionPair) correct(arms [2]string, verdicts []stats.Pair, known calibration,
	settings stats.CompareConfig, decide stats.DecideConfig, tests *family,
) error {
	common, err := stats.CompareCorrected(verdicts, known.pooled, settings)
	if err != nil {
		return err
	}
	comparison := common
	decide.WorstCases, decide.Unsure = nil, "a judge that errs differently on the two arms"
	first, second := known.perArm[arms[0]], known.perArm[arms[1]]
	labelled := first.M1 > 0 && first.M0 > 0 && second.M1 > 0 && second.M0 > 0
	if labelled {
		own, err := stats.CompareCorrectedPerAgent(verdicts, first, second, settings)
		switch {
		case err != nil && known.perAgent:
			d.Status, d.Obstacles = stats.StatusUninformative, []string{err.Error()}
			return nil
		case err != nil:
		case known.perAgent:
			comparison, d.PerAgent = own, true
		default:
			decide.WorstCases = []stats.Comparison{own}
		}
	}
	tests.add(comparison, decide, func(decision *stats.Decision) {
		d.Corrected, d.Claim, d.Obstacles = difference(decision), claimOf(decision), orEmpty(decision.Obstacles)
		if !labelled {
			d.Claim = claimInconclusive
			d.Obstacles = append(d.Obstacles, "an arm lacks labels of both kinds: the panel may be kinder to it")
		}
	})
	return nil
}

// verdicts pairs the panel's results on two arms task by task.
func (b *builder) verdicts(i, j int, dimension string) []stats.Pair {
	var pairs []stats.Pair
	at := map[string]int{}
	collect := func(group int, into func(*stats.Pair) *[]float64) {
		for _, member := range b.members[group] {
			cell := &b.report.Cells[member]
			passed, decided := cell.passed(dimension)
			if !decided {
				continue
			}
			index, known := at[cell.Task]
			if !known {
				index = len(pairs)
				at[cell.Task] = index
				pairs = append(pairs, stats.Pair{Task: cell.Task, Cluster: b.source.cells[member].Record.Cluster})
			}
			values := into(&pairs[index])
			*values = append(*values, passed)
		}
	}
	collect(i, func(p *stats.Pair) *[]float64 { return &p.Candidate })
	collect(j, func(p *stats.Pair) *[]float64 { return &p.Baseline })
	return pairs
}
