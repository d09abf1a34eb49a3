package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// statusStale says that the labels are about another judge than the one that judged here.
const statusStale = "stale"

// minRandomLabels is how many labels a random sample needs to be used directly.
const minRandomLabels = 50

// Corrected is a group's pass rate after correction for the errors of its judge.
type Corrected struct {
	// Status is stats.StatusOK where the rates are valid; everything below is nil otherwise.
	Status string `json:"status"`
	// PassRate is the corrected rate over all runs, Judged that over the runs the judge was asked
	// about.
	PassRate *stats.Interval `json:"passRate,omitempty"`
	Judged   *stats.Interval `json:"judged,omitempty"`
	// Observed is the judge's own pass rate.
	Observed float64 `json:"observed"`
	// Calibration is what the labels say about the judge; PerArm says that only this arm's labels
	// count.
	Calibration stats.Calibration `json:"calibration"`
	PerArm      bool              `json:"perArm,omitempty"`
	Design      string            `json:"design"`
	// Caveat warns the reader about it.
	Caveat string `json:"caveat,omitempty"`
}

// labelled holds people's labels on the judge of an experiment, with the verdicts they are about.
type labelled struct {
	*judge.Matched
	errors judge.Errors
	votes  map[ledger.Cell][]ledger.JudgeVote
}

// match finds the judge's verdict for every label; nil without labels.
func match(labels *judge.Labels, records []ledger.Record) (*labelled, error) {
	if labels == nil {
		return nil, nil
	}
	arms := map[string]bool{}
	out := &labelled{votes: map[ledger.Cell][]ledger.JudgeVote{}}
	for i := range records {
		arms[records[i].Arm] = true
		out.votes[records[i].Cell()] = records[i].JudgeVotes
	}
	var err error
	if out.Matched, err = labels.Match("", "", judged(records), slices.Sorted(maps.Keys(arms))); err != nil {
		return nil, err
	}
	out.errors, err = out.Errors()
	return out, err
}

// judged returns the judge's verdicts.
func judged(records []ledger.Record) judge.Judged {
	verdicts := judge.Judged{}
	for i := range records {
		if v := records[i].JudgeVerdict; v != nil {
			verdicts[records[i].Cell()] = v.Verdict == ledger.Pass
		}
	}
	return verdicts
}

// correct estimates what the pass rate would be if people had judged.
func (g *Group) correct(in Input) error {
	labels, verdicts := in.labelled, judged(g.records)
	c := &Corrected{Design: labels.Design}
	c.Calibration, c.PerArm = labels.errors.For(g.Provenance.Arm)
	g.Judge.Corrected = c
	if h := labels.errors.Homogeneity; h != nil {
		c.Caveat = h.Reason
	}
	if len(verdicts) == 0 {
		c.Status = stats.StatusUncalibrated
		return nil
	}
	c.Observed = ratio(g.Judge.Passed, len(verdicts))
	if !g.sameJudge(labels) {
		c.Status = statusStale
		return nil
	}
	g.Judge.countEffectiveVotes(labels, g.Provenance.Arm)
	level := HalfError(in.Level) // for each of the two factors
	var err error
	if c.Judged, c.Status, err = g.correctJudged(labels, verdicts, in.Level); err != nil || c.Judged == nil {
		return err
	}
	wide, _, err := g.correctJudged(labels, verdicts, level)
	if err != nil {
		return err
	}
	return g.correctAll(c, wide, len(verdicts), level, in.Level)
}

// HalfError returns the confidence level at which two intervals hold together with the given one.
func HalfError(level float64) float64 { return 1 - (1-level)/2 }

// sameJudge reports whether labels that carry their own verdicts are about the judge of this group.
// Those on runs of the ledger always are.
func (g *Group) sameJudge(labels *labelled) bool {
	if !slices.ContainsFunc(labels.Labels, func(l judge.MatchedLabel) bool { return l.Carried }) {
		return true
	}
	return !slices.ContainsFunc(g.Judge.Digests,
		func(digest string) bool { return !slices.Contains(labels.Digests, digest) })
}

// correctJudged corrects the rate over the runs that the judge was asked about; nil where the
// status says that it cannot be corrected.
func (g *Group) correctJudged(labels *labelled, verdicts judge.Judged, level float64) (*stats.Interval, string, error) {
	if sample, rest := labels.sample(g.Provenance.Arm, verdicts); labels.Design == judge.DesignRandom &&
		len(sample) >= minRandomLabels && len(rest) > 1 {
		if estimate, err := stats.PPIPlusPlus(sample, rest, level); err == nil {
			return &estimate.Interval, stats.StatusOK, nil
		}
	}
	correction, err := labels.errors.Correct(g.Provenance.Arm, verdicts, level)
	if err != nil {
		return nil, "", fmt.Errorf("correct the judge's pass rate: %w", err)
	}
	if correction.Status != stats.StatusOK {
		return nil, correction.Status, nil
	}
	return &stats.Interval{
		Est:    *correction.Est,
		Lo:     *correction.Lo,
		Hi:     *correction.Hi,
		Level:  level,
		Method: correction.Method,
	}, stats.StatusOK, nil
}

// sample splits the judged runs of an arm into those with a label and the verdicts on the others.
func (l *labelled) sample(arm string, verdicts judge.Judged) (with []stats.Label, rest []float64) {
	others := maps.Clone(verdicts)
	for _, one := range l.Labels {
		if !one.Carried && one.Arm == arm {
			delete(others, one.Cell())
			with = append(with, stats.Label{Human: indicator(one.Passed()), Judge: indicator(one.Judged)})
		}
	}
	for _, cell := range others.Cells() {
		rest = append(rest, indicator(others[cell]))
	}
	return with, rest
}

// correctAll takes the corrected rate from the judged runs to all runs: those that fail the checks
// fail, and those that are not judged keep their verdict. Where both the share that passes the
// checks and the judge's rate are uncertain, each limit is taken at half the error, so that both
// hold at once.
func (g *Group) correctAll(c *Corrected, wide *stats.Interval, asked int, wideLevel, level float64) error {
	var rates []float64
	passing, total := 0, 0
	for i := range g.Tasks {
		n, ok := 0, 0
		for j := range g.records {
			if r := &g.records[j]; r.TaskID == g.Tasks[i].TaskID && r.Verdict != ledger.Error && r.Grade != nil {
				n++
				if r.Grade.Verdict == ledger.Pass {
					ok++
				}
			}
		}
		passing, total = passing+ok, total+n
		if n > 0 {
			rates = append(rates, float64(ok)/float64(n))
		}
	}
	if passing == total && asked == total { // every run was judged
		c.PassRate = c.Judged
		return nil
	}
	mechanical, err := stats.TaskMean(rates, wideLevel)
	if err != nil {
		return fmt.Errorf("correct the pass rate: %w", err)
	}
	share := float64(asked) / float64(max(1, passing)) // of the runs that pass the checks, by the design of the tasks
	overall := func(checks, judge float64) float64 { return checks * (1 - share*(1-judge)) }
	c.PassRate = &stats.Interval{
		Est:    overall(mechanical.Est, c.Judged.Est),
		Lo:     overall(mechanical.Lo, wide.Lo),
		Hi:     overall(mechanical.Hi, wide.Hi),
		Level:  level,
		Method: c.Judged.Method + " × " + mechanical.Method,
	}
	return nil
}

// countEffectiveVotes fills in how many independent votes the panel is worth, given the errors its
// members share.
func (j *JudgeReport) countEffectiveVotes(labels *labelled, arm string) {
	if j.Agreement == nil || j.Agreement.Votes < 2 {
		return
	}
	wrong := make([][]bool, j.Agreement.Votes)
	for _, one := range labels.Labels {
		votes := labels.votes[one.Cell()]
		if pass, fail := countVotes(votes); one.Carried || one.Arm != arm || len(votes) != len(wrong) ||
			pass+fail < len(wrong) {
			continue
		}
		for i, vote := range votes {
			wrong[i] = append(wrong[i], (vote.Verdict == ledger.Pass) != one.Passed())
		}
	}
	correlation, err := stats.ErrorCorrelation(wrong)
	if err != nil {
		return
	}
	if votes, err := stats.EffectiveVotes(len(wrong), max(0, correlation)); err == nil {
		j.Agreement.EffectiveVotes = &votes
	}
}

func (c *Corrected) text() string {
	calibration := fmt.Sprintf("labels: the judge passes %d of %d good runs and fails %d of %d bad ones",
		c.Calibration.TP, c.Calibration.M1, c.Calibration.TN, c.Calibration.M0)
	switch c.Status {
	case stats.StatusOK:
		return fmt.Sprintf("pass rate corrected for the judge's errors: %s (%s; %s)", percent(c.PassRate),
			c.PassRate.Method, calibration)
	case statusStale:
		return "stale labels: they calibrate a different judge; pass rate left uncorrected"
	case stats.StatusUninformative:
		return "pass rate left uncorrected: the labels do not show that the judge is better than a coin flip " +
			"(" + calibration + ")"
	default:
		return "pass rate left uncorrected: labels of good and of bad runs are needed (" + calibration + ")"
	}
}
