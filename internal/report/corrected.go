package report

import (
	"fmt"
	"slices"

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

// correct estimates what the pass rate would be if people had judged.
func (g *Group) correct(in Input) error {
	labels := in.resolved
	c := &Corrected{Design: labels.design, Calibration: labels.calibration("")}
	g.Judge.Corrected = c
	if h := labels.homogeneity; h != nil {
		c.Caveat = h.Reason
		if own := labels.calibration(g.Provenance.Arm); h.PerAgent && own.M1 > 0 && own.M0 > 0 {
			c.Calibration, c.PerArm = own, true
		}
	}
	byTask, passed, asked := g.judged()
	if asked == 0 {
		c.Status = stats.StatusUncalibrated
		return nil
	}
	c.Observed = float64(passed) / float64(asked)
	if !g.sameJudge(labels) {
		c.Status = statusStale
		return nil
	}
	g.Judge.countEffectiveVotes(labels, g.Provenance.Arm)
	level := 1 - (1-in.Level)/2 // half of the error for each of the two factors
	judged, status, err := g.correctJudged(labels, c, byTask, passed, asked, in.Level)
	if err != nil || status != stats.StatusOK {
		c.Status = status
		return err
	}
	wide, _, err := g.correctJudged(labels, c, byTask, passed, asked, level)
	if err != nil {
		return err
	}
	c.Status, c.Judged = status, judged
	return g.correctAll(c, wide, asked, level, in.Level)
}

// judged collects the judge's verdicts task by task.
func (g *Group) judged() (byTask [][]float64, passed, asked int) {
	outcomes := map[string][]float64{}
	for i := range g.records {
		r := &g.records[i]
		if r.JudgeVerdict == nil {
			continue
		}
		pass := r.JudgeVerdict.Verdict == ledger.Pass
		outcomes[r.TaskID] = append(outcomes[r.TaskID], indicator(pass))
		asked++
		if pass {
			passed++
		}
	}
	for i := range g.Tasks {
		if list := outcomes[g.Tasks[i].TaskID]; len(list) > 0 {
			byTask = append(byTask, list)
		}
	}
	return byTask, passed, asked
}

// sameJudge reports whether labels that carry their own verdicts are about the judge of this group.
// Those on runs of the ledger always are.
func (g *Group) sameJudge(labels *resolved) bool {
	if !slices.ContainsFunc(labels.rows, func(l labelled) bool { return l.record == nil }) {
		return true
	}
	return !slices.ContainsFunc(g.Judge.Digests,
		func(digest string) bool { return !slices.Contains(labels.digests, digest) })
}

// correctJudged corrects the rate over the runs that the judge was asked about.
func (g *Group) correctJudged(labels *resolved, c *Corrected, byTask [][]float64, passed, asked int,
	level float64,
) (*stats.Interval, string, error) {
	if sample, rest := labels.sample(g); labels.design == designRandom && len(sample) >= minRandomLabels &&
		len(rest) > 1 {
		if estimate, err := stats.PPIPlusPlus(sample, rest, level); err == nil {
			return &estimate.Interval, stats.StatusOK, nil
		}
	}
	effective, err := stats.EffectiveRuns(byTask)
	if err != nil {
		return nil, "", fmt.Errorf("correct the judge's pass rate: %w", err)
	}
	if c.Calibration.M1 == 0 || c.Calibration.M0 == 0 {
		return nil, stats.StatusUncalibrated, nil
	}
	correction, err := stats.CorrectRate(passed, asked, effective, c.Calibration, level)
	if err != nil {
		return nil, "", fmt.Errorf("correct the judge's pass rate: %w", err)
	}
	if correction.Status != stats.StatusOK || correction.Est == nil || correction.Lo == nil || correction.Hi == nil {
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

// sample splits the judged runs of a group into those with a label and the verdicts on the others.
func (r *resolved) sample(g *Group) (with []stats.Label, rest []float64) {
	labelledRuns := map[ledger.Cell]bool{}
	for _, row := range r.rows {
		if row.record != nil && row.arm == g.Provenance.Arm {
			labelledRuns[row.record.Cell()] = true
			with = append(with, stats.Label{Human: indicator(row.human), Judge: indicator(row.judge)})
		}
	}
	for i := range g.records {
		if v := g.records[i].JudgeVerdict; v != nil && !labelledRuns[g.records[i].Cell()] {
			rest = append(rest, indicator(v.Verdict == ledger.Pass))
		}
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
func (j *JudgeReport) countEffectiveVotes(labels *resolved, arm string) {
	if j.Agreement == nil || j.Agreement.Votes < 2 {
		return
	}
	wrong := make([][]bool, j.Agreement.Votes)
	for _, row := range labels.rows {
		if row.record == nil || row.arm != arm || len(row.record.JudgeVotes) != len(wrong) {
			continue
		}
		if pass, fail := countVotes(row.record.JudgeVotes); pass+fail < len(wrong) {
			continue
		}
		for i, vote := range row.record.JudgeVotes {
			wrong[i] = append(wrong[i], (vote.Verdict == ledger.Pass) != row.human)
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
		return fmt.Sprintf("pass rate corrected for the judge's errors: %s (%s; %s)", Percent(c.PassRate),
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
