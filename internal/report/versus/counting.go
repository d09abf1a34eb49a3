package versus

import (
	"fmt"
	"slices"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// observe returns what a cell counts in a dimension. A disqualified run fails, and so does in
// correctness one whose check failed and about which the panel was not asked. Where the panel has
// no verdict, the outcome is not known, whatever the reason.
func (c *Cell) observe(dimension string) report.Observation {
	passed, judged := c.passed(dimension)
	switch {
	case c.Status == evidence.StatusEnvError:
		return report.Observation{}
	case c.Status == evidence.StatusDisqualified,
		dimension == evidence.Correctness && c.unverified && !c.asked(dimension):
		return report.Observation{Known: true}
	}
	return report.Observation{Value: passed, Known: judged, Judged: judged}
}

// asked reports whether the panel was asked about a dimension.
func (c *Cell) asked(dimension string) bool {
	for i := range c.Verdicts {
		if c.Verdicts[i].Dimension == dimension {
			return true
		}
	}
	return false
}

// in lists what every planned run of the arm counts in a dimension.
func (a *arm) in(dimension string) []report.Outcome {
	return a.Outcomes(func(i int) report.Observation { return a.runs[i].observe(dimension) })
}

// anyAsked reports whether the panel was asked about a dimension of any run of the arms.
func anyAsked(dimension string, arms ...*arm) bool {
	return slices.ContainsFunc(arms, func(a *arm) bool {
		return slices.ContainsFunc(a.runs, func(r run) bool { return r.asked(dimension) })
	})
}

// judgedPairs collects the outcomes of two arms task by task, the baseline first. fill replaces
// those that are not certain; without it they are left out.
func judgedPairs(baseline, candidate []report.Outcome, fill *[2]float64) []stats.JudgedPair {
	at, pairs := map[string]int{}, []stats.JudgedPair{}
	for side, outcomes := range [][]report.Outcome{baseline, candidate} {
		for _, o := range outcomes {
			i, known := at[o.Task]
			if !known {
				i = len(pairs)
				at[o.Task] = i
				pairs = append(pairs, stats.JudgedPair{Pair: stats.Pair{Task: o.Task, Cluster: o.Cluster}})
			}
			pair := &pairs[i]
			verdicts, facts := &pair.Baseline, &pair.BaselineFacts
			if side == 1 {
				verdicts, facts = &pair.Candidate, &pair.CandidateFacts
			}
			switch {
			case fill != nil && o.Unsure:
				*facts = append(*facts, fill[side])
			case o.Known && o.Judged:
				*verdicts = append(*verdicts, o.Value)
			case o.Known:
				*facts = append(*facts, o.Value)
			}
		}
	}
	return pairs
}

// excluded counts the outcomes that are not certain.
func excluded(outcomes []report.Outcome) stats.Exclusion {
	e := stats.Exclusion{Planned: len(outcomes)}
	for i := range outcomes {
		if outcomes[i].Unsure {
			e.Excluded++
		}
	}
	return e
}

// undecidedText names the runs of two arms that have no certain outcome in a dimension; empty if
// there are none.
func undecidedText(a, b stats.Exclusion) string {
	if n := a.Excluded + b.Excluded; n > 0 {
		return report.Count(n, "run") + " without a verdict of the panel"
	}
	return ""
}

// corrections returns the rates of an arm by dimension, over all its runs: as the panel judged
// them, and corrected for its errors.
func (b *builder) corrections(of *arm) ([]judge.BiasCorrection, error) {
	own := []judge.BiasCorrection{}
	if b.judgement == nil {
		return own, nil
	}
	everyArm := make([]*arm, len(b.arms))
	for i := range b.arms {
		everyArm[i] = &b.arms[i]
	}
	for i := range b.judgement.Calibrations {
		calibration := &b.judgement.Calibrations[i]
		if !anyAsked(calibration.Dimension, everyArm...) {
			continue
		}
		correction, err := of.correct(calibration, of.in(calibration.Dimension))
		if err != nil {
			return nil, fmt.Errorf("correct %s of %s: %w", calibration.Dimension, of.Name, err)
		}
		own = append(own, correction)
	}
	return own, nil
}

// correct corrects the rate over the runs that the panel decided, and takes it to all runs: facts
// are failures, and what is not known bounds it.
func (a *arm) correct(calibration *judge.Calibration, outcomes []report.Outcome) (judge.BiasCorrection, error) {
	name, judged, facts := a.Provenance.Arm, judge.Judged{}, 0
	for i, record := range a.Records() {
		switch o := &outcomes[i]; {
		case o.Known && o.Judged:
			judged[record.Cell()] = o.Value == 1
		case o.Known:
			facts++
		}
	}
	c := judge.BiasCorrection{Dimension: calibration.Dimension, Agent: name, Status: calibration.Status}
	if len(judged) > 0 {
		var err error
		if c, err = calibration.Correct(name, judged, stats.DefaultLevel); err != nil {
			return c, err
		}
	}
	if c.Facts = facts; facts > 0 {
		if err := a.overAll(&c, calibration, judged, outcomes); err != nil {
			return c, err
		}
	}
	if c.Undecided = len(outcomes) - c.N; c.Undecided > 0 {
		rate := c.ObservedRate
		if c.CorrectedRate != nil {
			rate = *c.CorrectedRate
		}
		known := float64(c.N) / float64(len(outcomes))
		c.WorstRate, c.BestRate = new(known*rate), new(known*rate+1-known)
	}
	return c, nil
}

// overAll takes a rate from the runs that the panel decided to those with an outcome, of which the
// others failed.
func (a *arm) overAll(c *judge.BiasCorrection, calibration *judge.Calibration, judged judge.Judged,
	outcomes []report.Outcome,
) error {
	c.ObservedRate *= float64(len(judged)) / float64(len(judged)+c.Facts)
	c.N = len(judged) + c.Facts
	if c.CorrectedRate == nil {
		return nil
	}
	level := report.HalfError(stats.DefaultLevel)
	wide, err := calibration.Correct(a.Provenance.Arm, judged, level)
	if err != nil {
		return err
	}
	asked := a.Outcomes(func(i int) report.Observation {
		return report.Observation{Value: indicator(outcomes[i].Judged), Known: outcomes[i].Known}
	})
	share, err := report.MeanOverTasks(asked, level)
	if err != nil {
		return err
	}
	c.RawTheta = nil // that of the judged runs would mislead
	c.CorrectedRate = new(share.Est * *c.CorrectedRate)
	c.CI95Low, c.CI95High = new(share.Lo**wide.CI95Low), new(share.Hi**wide.CI95High)
	c.Method += " × " + share.Method
	return nil
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
