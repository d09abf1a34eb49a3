package versus

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// made is a run directory in memory: what Open would have read.
type made struct {
	source    *Source
	judgement *Judgement
	known     map[string]*judge.Calibration
}

// newMade returns one without any attempt.
func newMade() *made {
	return &made{
		source: &Source{
			contents: &ledger.Contents{},
			options:  Options{Weights: judge.DefaultWeights()},
			tasks:    map[string]evidence.Task{},
			planned:  &report.Planned{},
		},
		judgement: &Judgement{Result: &judge.Result{PerDimension: map[string]judge.Cost{}}},
	}
}

// add adds an attempt that resolved its task or not, with the panel's results by dimension.
func (m *made) add(task, arm string, run int, resolved *bool, verdicts map[string]bool) *evidence.Run {
	cost := 0.5
	record := ledger.Record{
		TaskID:     task,
		Arm:        arm,
		Agent:      arm,
		RunIndex:   run,
		Experiment: "experiment",
		Verdict:    ledger.Fail,
		CostUSD:    &cost,
		DurationMs: 1000,
		EndMs:      int64(1000 + len(m.source.contents.Records)),
	}
	if resolved == nil {
		record.Verdict = ledger.Error
	} else if *resolved {
		record.Verdict = ledger.Pass
	}
	m.source.contents.Records = append(m.source.contents.Records, record)
	m.source.tasks[task] = evidence.Task{ID: task}
	result := &evidence.Run{Key: record.Key(), Agent: arm, Status: evidence.StatusOK}
	if result.Session.TaskResolved = resolved; resolved == nil {
		result.Status = evidence.StatusEnvError
	}
	m.source.cells = append(m.source.cells, attempt{Examined: evidence.Examined{Record: &record, Run: result}})
	cell := judge.CellVerdicts{Cell: record.Cell(), Dimensions: map[string]judge.PanelVerdict{}}
	for dimension, pass := range verdicts {
		verdict := judge.PanelVerdict{Dimension: dimension, Fail: 1}
		word := judge.Fail
		if pass {
			word, verdict.Pass, verdict.Fail = judge.Pass, 1, 0
		}
		verdict.Result = &word
		cell.Dimensions[dimension] = verdict
	}
	m.judgement.Result.Cells = append(m.judgement.Result.Cells, cell)
	return result
}

func (m *made) report(t testing.TB) *EvalReport {
	t.Helper()
	b := &builder{source: m.source, judgement: m.judgement, known: m.known}
	built, err := b.build()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func yes(resolved bool) *bool { return &resolved }

// draw makes an experiment in which both arms pass with the same chance, which differs from task to
// task, and a judge with the given TPR and TNR on each arm.
func draw(random *rand.Rand, tasks, runs int, arms []string, judges map[string][2]float64) *made {
	m := newMade()
	for task := range tasks {
		chance := random.Float64()
		for _, arm := range arms {
			for run := range runs {
				passed := random.Float64() < chance
				rate := 1 - judges[arm][1]
				if passed {
					rate = judges[arm][0]
				}
				m.add(fmt.Sprintf("task-%02d", task), arm, run, &passed,
					map[string]bool{evidence.Correctness: random.Float64() < rate})
			}
		}
	}
	return m
}

// calibrate makes labels of so many runs of each kind and arm.
func calibrate(t testing.TB, random *rand.Rand, labels int, arms []string, judges map[string][2]float64,
) *judge.Calibration {
	t.Helper()
	known := &judge.Calibration{ID: "x", Status: stats.StatusOK}
	for _, arm := range arms {
		own := stats.Calibration{Agent: arm, M1: labels, M0: labels}
		for range labels {
			if random.Float64() < judges[arm][0] {
				own.TP++
			}
			if random.Float64() < judges[arm][1] {
				own.TN++
			}
		}
		known.PerArm = append(known.PerArm, own)
	}
	homogeneity, err := stats.Homogeneity(known.PerArm)
	if err != nil {
		t.Fatal(err)
	}
	known.Homogeneity, known.Pooled = &homogeneity, homogeneity.Pooled
	return known
}

// claims reports whether anything is claimed.
func (r *EvalReport) claims() bool {
	for _, pair := range r.Pairs {
		if pair.Claim == claimA || pair.Claim == claimB {
			return true
		}
		for _, d := range pair.Dimensions {
			if d.Claim == claimA || d.Claim == claimB {
				return true
			}
		}
	}
	return false
}

// Two arms that are the same: whatever is claimed about them is false.
func TestReportsOnEqualArmsRarelyClaimAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 3))
	arms := []string{"a", "b"}
	judges := map[string][2]float64{"a": {.9, .85}, "b": {.9, .85}}
	claims, reports := 0, 200
	if testenv.Race {
		reports = 40
	}
	for i := range reports {
		m := draw(random, 12+i%10, 1+i%3, arms, judges)
		m.known = map[string]*judge.Calibration{evidence.Correctness: calibrate(t, random, 40, arms, judges)}
		if m.report(t).claims() {
			claims++
		}
	}
	if claims > reports/20 {
		t.Errorf("%d of %d reports on equal arms claim a difference, want at most 5%%", claims, reports)
	}
}

func TestAJudgeThatIsKinderToOneArmYieldsNoClaimOnceLabelsAreGiven(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 4))
	arms := []string{"a", "b"}
	judges := map[string][2]float64{"a": {.98, .60}, "b": {.80, .95}}
	claims, fooled := 0, 0
	const reports = 40
	for range reports {
		m := draw(random, 40, 3, arms, judges)
		m.known = map[string]*judge.Calibration{evidence.Correctness: calibrate(t, random, 40, arms, judges)}
		built := m.report(t)
		if d := built.Pairs[0].Dimensions[0].Observed; d.P < .05 {
			fooled++
		}
		if built.claims() {
			claims++
		}
	}
	if fooled < reports/2 || claims > reports/20 {
		t.Errorf("the verdicts differ in %d of %d reports on equal arms (want most), and %d claim it (want at most "+
			"5%%)", fooled, reports, claims)
	}
}

// TestOtherWeightsAreMarked: they are chosen when the results are known.
func TestOtherWeightsAreMarked(t *testing.T) {
	other, err := judge.ParseWeights("correctness=0.9")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		weights judge.Weights
		marked  bool
	}{{judge.DefaultWeights(), false}, {other, true}} {
		m := newMade()
		for _, arm := range []string{"a", "b"} {
			m.add("t1", arm, 0, new(true), nil)
		}
		m.source.options.Weights = test.weights
		built := m.report(t)
		var text, markdown bytes.Buffer
		if err := errors.Join(built.Text(&text), built.Markdown(&markdown)); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{text.String(), markdown.String()} {
			if strings.Contains(out, "not what was planned: other weights") != test.marked {
				t.Errorf("marked %t:\n%s", test.marked, out)
			}
		}
		if len(built.NotPlanned) > 0 != test.marked {
			t.Errorf("JSON says %q", built.NotPlanned)
		}
	}
}

// A panel may refine the causes that need an understanding of the change, and no others.
func TestThePanelRanksCausesAnew(t *testing.T) {
	for _, test := range []struct {
		cause, want        string
		correct, completed bool
	}{
		{evidence.CauseWrongFix, evidence.CauseIncompleteFix, true, false},
		{evidence.CauseWrongFix, evidence.CauseWrongFix, false, false},
		{evidence.CauseWrongFix, evidence.CauseWrongFix, true, true},
		{evidence.CauseTimeout, evidence.CauseTimeout, true, false},
	} {
		t.Run(test.cause, func(t *testing.T) {
			m := newMade()
			run := m.add("t", "a", 0, yes(false), map[string]bool{
				evidence.Correctness: test.correct, evidence.Completeness: test.completed,
			})
			run.Attribution = &evidence.ErrorAttribution{Category: test.cause, Method: evidence.MethodHeuristic}
			cause := m.report(t).Cells[0].Errors[0]
			if cause.Category != test.want || (cause.Method == evidence.MethodLLM) != (test.cause != test.want) {
				t.Errorf("with correctness %v and completeness %v is %+v, want %s", test.correct,
					test.completed, cause, test.want)
			}
			if run.Attribution.Category != test.cause {
				t.Error("the evidence was changed")
			}
		})
	}
}

// Labels of one arm say nothing about how kind the judge is to the other.
func TestLabelsOfOneArmCarryNoClaim(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 5))
	arms := []string{"a", "b"}
	judges := map[string][2]float64{"a": {.98, .60}, "b": {.80, .95}}
	m := draw(random, 60, 3, arms, judges)
	known := calibrate(t, random, 200, arms, judges)
	known.Pooled, known.Homogeneity = known.Own("a"), nil
	known.PerArm = known.PerArm[:1]
	m.known = map[string]*judge.Calibration{evidence.Correctness: known}
	d := m.report(t).Pairs[0].Dimensions[0]
	if d.Claim != claimInconclusive || d.Corrected == nil || len(d.Obstacles) == 0 {
		t.Errorf("claim %s with a corrected difference of %+v, obstacles %q", d.Claim, d.Corrected, d.Obstacles)
	}
}

// Without labels verdicts are shown and carry no claim, however clear they are.
func TestUncalibratedVerdictsCarryNoClaim(t *testing.T) {
	m := newMade()
	for task := range 30 {
		name := fmt.Sprintf("task-%02d", task)
		m.add(name, "a", 0, yes(true), map[string]bool{evidence.Correctness: true})
		m.add(name, "b", 0, yes(true), map[string]bool{evidence.Correctness: false})
	}
	d := m.report(t).Pairs[0].Dimensions[0]
	if d.Observed.Est != 1 || d.Corrected != nil || d.Claim != claimInconclusive ||
		d.Status != stats.StatusUncalibrated {
		t.Errorf("uncalibrated dimension: %+v", d)
	}
}

// errs is a panel that errs as often on both arms, with many labels.
func errs(dimension string) *judge.Calibration {
	known := &judge.Calibration{ID: "x", Dimension: dimension, Status: stats.StatusOK}
	for _, arm := range []string{"a", "b"} {
		known.PerArm = append(known.PerArm, stats.Calibration{
			Agent: arm,
			TP:    98,
			M1:    100,
			TN:    98,
			M0:    100,
		})
	}
	known.Pooled = stats.Calibration{
		TP: 196,
		M1: 200,
		TN: 196,
		M0: 200,
	}
	return known
}

func (m *made) calibrated(known *judge.Calibration) {
	m.known = map[string]*judge.Calibration{known.Dimension: known}
	m.judgement.Calibrations = []judge.Calibration{*known}
}

// Half the runs of a fail their check, and the panel is asked about the other half, of which 90%
// are right: 45% of all. Of b, all runs pass the check and 75% are right.
func TestARunThatFailsItsCheckIsNotCorrect(t *testing.T) {
	m := newMade()
	for task := range 200 {
		name := fmt.Sprintf("task-%03d", task)
		if task%2 == 0 {
			failed := m.add(name, "a", 0, yes(false), nil)
			failed.Session.Verify = &session.VerifyResult{}
		} else {
			m.add(name, "a", 0, yes(true), map[string]bool{evidence.Correctness: task%20 != 1})
		}
		m.add(name, "b", 0, yes(true), map[string]bool{evidence.Correctness: task/2%4 != 0})
	}
	m.calibrated(errs(evidence.Correctness))
	built := m.report(t)
	for i, want := range []float64{.45, .75} {
		c := built.PerAgent[i].Corrected[0]
		if c.CorrectedRate == nil || math.Abs(*c.CorrectedRate-want) > .02 || c.N != 200 ||
			*c.CI95Low > want || *c.CI95High < want {
			t.Errorf("%s: corrected rate %+v, want %g", built.PerAgent[i].Arm, c, want)
		}
	}
	d := built.Pairs[0].Dimensions[0]
	if want := "claimed: b > a; b > a in correctness, by the panel; delivery unknown"; built.Statement != want {
		t.Errorf("the headline is %q, want %q", built.Statement, want)
	}
	if d.Claim != claimB || math.Abs(d.Corrected.Est+.3) > .02 || d.NTasks != 200 {
		t.Errorf("claim %s with %+v, because %q; want b to be better by 30 points", d.Claim, d.Corrected, d.Obstacles)
	}
}

// Both arms are right in half of their runs; about most of the bad runs of a the panel does not
// conclude.
func TestNoClaimRestsOnWhereThePanelAbstains(t *testing.T) {
	m := newMade()
	for task := range 80 {
		name := fmt.Sprintf("task-%03d", task)
		verdicts := map[string]bool{evidence.Completeness: task%2 == 0}
		m.add(name, "b", 0, yes(true), verdicts)
		if task%8 != 1 && task%2 != 0 {
			verdicts = nil
		}
		m.add(name, "a", 0, yes(true), verdicts)
	}
	m.calibrated(errs(evidence.Completeness))
	built := m.report(t)
	d := built.Pairs[0].Dimensions[0]
	for _, agent := range built.PerAgent {
		if bounds := agent.BlendedBounds; (bounds != nil) != (agent.Arm == "a") ||
			bounds != nil && !(bounds.Worst < *agent.Blended && *agent.Blended <= bounds.Best) {
			t.Errorf("%s has a blended score of %v, bounds %+v", agent.Arm, *agent.Blended, bounds)
		}
	}
	if d.Claim == claimA || d.Claim == claimB || d.Undecided != 30 {
		t.Errorf("claim %s with %+v and %d undecided runs", d.Claim, d.Corrected, d.Undecided)
	}
	c := built.PerAgent[0].Corrected[0]
	if c.Agent != "a" || c.Undecided != 30 || c.WorstRate == nil || *c.WorstRate > .52 || *c.BestRate < .8 {
		t.Errorf("rate of a: %+v", c)
	}
	// where the worst outcomes of the undecided runs change nothing, the claim stands
	clear := newMade()
	for task := range 80 {
		name := fmt.Sprintf("task-%03d", task)
		good, bad := map[string]bool{evidence.Completeness: true}, map[string]bool{evidence.Completeness: false}
		if task < 2 {
			good = nil
		}
		clear.add(name, "a", 0, yes(true), good)
		clear.add(name, "b", 0, yes(true), bad)
	}
	clear.calibrated(errs(evidence.Completeness))
	if d := clear.report(t).Pairs[0].Dimensions[0]; d.Claim != claimA || d.Undecided != 2 {
		t.Errorf("claim %s with %d undecided runs, because %q", d.Claim, d.Undecided, d.Obstacles)
	}
}
