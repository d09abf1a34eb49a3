package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// wonAndLost is a single-run experiment with so many tasks won, lost and tied by the candidate.
func wonAndLost(wins, losses, ties int) []Pair {
	var pairs []Pair
	add := func(n int, candidate, baseline float64) {
		for range n {
			pairs = append(pairs, Pair{Candidate: []float64{candidate}, Baseline: []float64{baseline}})
		}
	}
	add(wins, 1, 0)
	add(losses, 0, 1)
	add(ties, 1, 1)
	return pairs
}

func decide(t *testing.T, pairs []Pair, config DecideConfig) Decision {
	t.Helper()
	return must[Decision](t)(Decide(must[Comparison](t)(Compare(pairs, CompareConfig{})), config))
}

func TestClaimRule(t *testing.T) {
	tooHigh := .2
	for name, row := range map[string]struct {
		pairs  []Pair
		config DecideConfig
		want   Claim
		says   string
	}{
		"a clear win":  {wonAndLost(20, 3, 27), DecideConfig{}, Improved, "34.0 percentage points higher"},
		"a clear loss": {wonAndLost(3, 20, 27), DecideConfig{}, Regressed, "34.0 percentage points lower"},
		"a loss where less is better": {
			wonAndLost(3, 20, 27),
			DecideConfig{Measure: Measure{LowerIsBetter: true}},
			Improved, "lower",
		},
		"p above α": {wonAndLost(9, 2, 39), DecideConfig{}, NotProven, "p = 0.0654 ≥ α = 0.05"},
		"p only before adjusting": {
			wonAndLost(20, 3, 27),
			DecideConfig{AdjustedP: &tooHigh},
			NotProven,
			"adjusted p = 0.200",
		},
		"nine tasks": {
			wonAndLost(9, 0, 0),
			DecideConfig{},
			Insufficient,
			"9 tasks where at least 10 are needed",
		},
		"ten tasks": {wonAndLost(10, 0, 0), DecideConfig{}, Improved, "100.0 percentage points higher"},
		"one task": {
			[]Pair{{Candidate: bits01("111"), Baseline: bits01("000")}},
			DecideConfig{},
			Insufficient, "no statistical claim",
		},
		"exclusions are counted": {
			wonAndLost(20, 3, 27),
			DecideConfig{Candidate: Exclusion{9, 100}, Baseline: Exclusion{5, 100}},
			Improved, "14 excluded",
		},
		"a claim that is withheld": {
			wonAndLost(20, 3, 27),
			DecideConfig{Withheld: []string{"the model changed"}},
			NotProven,
			"Not proven: the model changed; the observed difference in pass rate is +34.0 percentage points (",
		},
		"a sameness that is withheld": {
			wonAndLost(0, 0, 400),
			DecideConfig{Margin: .05, Withheld: []string{"the model changed"}},
			NotProven,
			"Not proven: the model changed; ",
		},
		"too few tasks for a claim that is withheld": {
			wonAndLost(9, 0, 0),
			DecideConfig{Withheld: []string{"the model changed"}},
			Insufficient,
			"claim: the model changed; 9 tasks where at least 10 are needed and",
		},
		"a remark": {
			wonAndLost(20, 3, 27),
			DecideConfig{Remark: "delivery unknown"},
			Improved,
			"than the baseline; delivery unknown (95% CI",
		},
		"a detectable effect too large": {wonAndLost(6, 4, 2), DecideConfig{}, Insufficient, "the minimum detectable difference is 73.6"},
		"no detectable effect": {wonAndLost(0, 0, 1), DecideConfig{}, Insufficient, "1 task where at least 10 are needed and the " +
			"experiment is too small to detect any difference at 80% power; "},
		"the same within a margin": {
			wonAndLost(2, 2, 396),
			DecideConfig{Margin: .05},
			Equivalent,
			"is less than 5.0 percentage points",
		},
		"no margin, no equivalence": {
			wonAndLost(2, 2, 396),
			DecideConfig{},
			NotProven,
			"confidence interval includes zero",
		},
		"all ties on few tasks": {
			wonAndLost(0, 0, 12),
			DecideConfig{Margin: .05},
			Insufficient,
			"the minimum detectable difference is",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(t, row.pairs, row.config)
			if got.Claim != row.want || !strings.Contains(got.Sentence, row.says) {
				t.Errorf("claim %q: %s\nwant %q with %q", got.Claim, got.Sentence, row.want, row.says)
			}
			if claimed := got.Claim == Improved || got.Claim == Regressed ||
				got.Claim == Equivalent; claimed == (len(got.Obstacles) > 0) {
				t.Errorf("claim %q with obstacles %v", got.Claim, got.Obstacles)
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("the decision cannot be written: %v", err)
			}
		})
	}
}

func TestFamilyOfDecisionsIsCorrectedByHolm(t *testing.T) {
	strong := must[Comparison](t)(Compare(wonAndLost(20, 3, 27), CompareConfig{}))
	weak := must[Comparison](t)(Compare(wonAndLost(8, 1, 41), CompareConfig{}))
	decisions := must[[]Decision](t)(DecideFamily([]Comparison{strong, weak, weak}, make([]DecideConfig, 3)))
	wantNear(t, "adjusted p of the strongest", decisions[0].PAdj, 3*strong.P)
	wantNear(t, "adjusted p of the weak ones", decisions[1].PAdj, 2*weak.P)
	if decisions[0].Claim != Improved || decisions[1].Claim != NotProven {
		t.Errorf("claims %s and %s, want improved and not proven", decisions[0].Claim, decisions[1].Claim)
	}
	if alone := decide(t, wonAndLost(8, 1, 41), DecideConfig{}); alone.Claim != Improved {
		t.Errorf("the weak one alone is %s, so the family changed nothing", alone.Claim)
	}
}

func TestMethodIsChosenByTheData(t *testing.T) {
	graded := func(n int) []Pair {
		pairs := make([]Pair, n)
		for i := range pairs {
			pairs[i] = Pair{Candidate: []float64{.1 * float64(i%7)}, Baseline: []float64{.15 * float64(i%5)}}
		}
		return pairs
	}
	withLabels := func(pairs []Pair, set func(*Pair, int)) []Pair {
		for i := range pairs {
			set(&pairs[i], i)
		}
		return pairs
	}
	skewedCost := make([]Pair, 60)
	for i := range skewedCost {
		skewedCost[i] = Pair{
			Candidate: []float64{math.Exp(math.Exp(float64(i % 6)))},
			Baseline:  []float64{1 + .01*float64(i%7)},
		}
	}
	for name, row := range map[string]struct {
		pairs            []Pair
		ratio            bool
		method, interval string
	}{
		"single binary runs": {wonAndLost(5, 3, 10), false, MethodMcNemar, MethodBonettPrice},
		"six tasks":          {sixTasks(), false, MethodSignFlip, MethodT},
		"graded scores":      {graded(60), false, MethodSignFlip, MethodT},
		"clusters": {
			withLabels(graded(30), func(p *Pair, i int) { p.Cluster = string(rune('a' + i/3)) }),
			false, MethodClusterSignFlip, MethodClusterT,
		},
		"strata": {
			withLabels(graded(30), func(p *Pair, i int) { p.Stratum = string(rune('a' + i%3)) }),
			false, MethodStratifiedFlip, MethodStratifiedT,
		},
		"binary in clusters": {
			withLabels(wonAndLost(9, 2, 9),
				func(p *Pair, i int) { p.Cluster = string(rune('a' + i/2)) }), false, MethodClusterSignFlip,
			MethodClusterT,
		},
		"skewed cost":      {skewedCost, true, MethodSignFlip, MethodBCa},
		"few skewed costs": {skewedCost[:12], true, MethodSignFlip, MethodT},
		"all ties": {[]Pair{
			{Candidate: bits01("11"), Baseline: bits01("11")},
			{Candidate: bits01("10"), Baseline: bits01("01")},
		}, false, MethodSignFlip, MethodAddTwo},
	} {
		t.Run(name, func(t *testing.T) {
			compare := Compare
			if row.ratio {
				compare = CompareRatio
			}
			got := must[Comparison](t)(compare(row.pairs, CompareConfig{}))
			if got.Method != row.method || got.Interval.Method != row.interval || got.Reason == "" {
				t.Errorf("method %s with interval %s, want %s with %s", got.Method, got.Interval.Method, row.method,
					row.interval)
			}
		})
	}
}

func TestRatioOfCosts(t *testing.T) {
	pairs := make([]Pair, 12)
	for i := range pairs {
		size := 1 + float64(i)
		pairs[i] = Pair{
			Candidate: []float64{.8 * size, .8 * size * (1 + .01*float64(i%3))},
			Baseline:  []float64{size, size},
		}
	}
	comparison := must[Comparison](t)(CompareRatio(pairs, CompareConfig{}))
	ratio, ok := comparison.RatioInterval()
	if !ok || ratio.Est < .79 || ratio.Est > .82 || ratio.Hi >= 1 {
		t.Errorf("ratio %v in [%v, %v], want about 0.8", ratio.Est, ratio.Lo, ratio.Hi)
	}
	decision := must[Decision](t)(Decide(comparison,
		DecideConfig{Measure: Measure{Name: "cost", LowerIsBetter: true, Candidate: "new", Baseline: "old"}}))
	if decision.Claim != Improved || !strings.Contains(decision.Sentence, "cost of new is 19.") ||
		!strings.Contains(decision.Sentence, "% lower than old") {
		t.Errorf("decision: %s", decision.Sentence)
	}
	same := []Pair{{Candidate: []float64{2}, Baseline: []float64{2}}, {Candidate: []float64{3}, Baseline: []float64{3}}}
	flat := must[Comparison](t)(CompareRatio(same, CompareConfig{}))
	if flat.Interval != nil || must[Decision](t)(Decide(flat, DecideConfig{Margin: .1})).Claim != Insufficient {
		t.Errorf("identical costs of two tasks: %+v, want no interval and no claim", flat)
	}
}

func TestCommonlySolvedTasks(t *testing.T) {
	outcomes := []Pair{
		{Task: "both", Candidate: bits01("10"), Baseline: bits01("11")},
		{Task: "only candidate", Candidate: bits01("11"), Baseline: bits01("00")},
		{Task: "neither", Candidate: bits01("00"), Baseline: bits01("00")},
	}
	costs := make([]Pair, len(outcomes))
	for i, outcome := range outcomes {
		costs[i] = Pair{Task: outcome.Task, Candidate: []float64{1, 2}, Baseline: []float64{3, 4}}
	}
	common := must[[]Pair](t)(CommonlySolved(outcomes, costs))
	if len(common) != 1 || common[0].Task != "both" || len(common[0].Candidate) != 1 || common[0].Candidate[0] != 1 ||
		len(common[0].Baseline) != 2 {
		t.Errorf("commonly solved: %+v, want the passing runs of the first task", common)
	}
	costs[1].Task = "other"
	if _, err := CommonlySolved(outcomes, costs); err == nil {
		t.Error("outcomes and costs of different tasks are accepted")
	}
}

func TestUnpairedTasksAreCountedNotGuessed(t *testing.T) {
	pairs := append(wonAndLost(3, 1, 2), Pair{Candidate: []float64{1}}, Pair{Baseline: []float64{0}})
	got := must[Comparison](t)(Compare(pairs, CompareConfig{}))
	if got.Tasks != 6 || got.Unpaired != 2 || got.Runs != 12 || len(got.Warnings) == 0 {
		t.Errorf("%d tasks, %d unpaired, %d runs, warnings %v", got.Tasks, got.Unpaired, got.Runs, got.Warnings)
	}
}

func TestClustersAndStrataChangeTheStandardError(t *testing.T) {
	pairs := make([]Pair, 24)
	for i := range pairs {
		group := float64(i / 6)
		pairs[i] = Pair{Candidate: []float64{.5 + .1*group + .01*float64(i%3)}, Baseline: []float64{.4}}
	}
	plain := must[Comparison](t)(Compare(pairs, CompareConfig{}))
	label := func(set func(*Pair, string)) Comparison {
		labelled := make([]Pair, len(pairs))
		for i, pair := range pairs {
			set(&pair, string(rune('a'+i/6)))
			labelled[i] = pair
		}
		return must[Comparison](t)(Compare(labelled, CompareConfig{}))
	}
	clustered := label(func(p *Pair, name string) { p.Cluster = name })
	stratified := label(func(p *Pair, name string) { p.Stratum = name })
	if clustered.SE <= plain.SE || stratified.SE >= plain.SE {
		t.Errorf("standard errors: clustered %v, plain %v, stratified %v; want them falling", clustered.SE, plain.SE,
			stratified.SE)
	}
	if clustered.P < 2.0/16 {
		t.Errorf("four clusters give p = %v, below the smallest attainable", clustered.P)
	}
	for _, got := range []Comparison{clustered, stratified} {
		wantNear(t, "effect", got.Est, plain.Est)
	}
}

func TestLoneStratumJoinsAnother(t *testing.T) {
	pairs := sixTasks()
	for i := range pairs {
		pairs[i].Stratum = "common"
	}
	pairs[5].Stratum = "rare"
	lone := must[Comparison](t)(Compare(pairs, CompareConfig{}))
	wantNear(t, "standard error", lone.SE, .111111)
	pairs[4].Stratum = "also rare"
	two := must[Comparison](t)(Compare(pairs, CompareConfig{}))
	if two.Method != MethodStratifiedFlip || two.Interval == nil {
		t.Errorf("two lone strata: %+v, want them pooled into one", two)
	}
}

func TestPassAtKOverTasksCountsWhatItCannotEstimate(t *testing.T) {
	tasks := []Tally{{N: 10, C: 3}, {N: 10, C: 10}, {N: 10, C: 0}, {N: 2, C: 1}}
	got := must[AtK](t)(OverTasks(tasks, 3, .95, PassAtK))
	if got.Tasks != 3 || got.TooFew != 1 || len(got.Warnings) != 1 {
		t.Errorf("%+v, want 3 tasks and 1 with too few runs", got)
	}
	none := must[AtK](t)(OverTasks(tasks, 11, .95, PassAtK))
	text, err := none.MarshalJSON()
	if err != nil || string(text) != `{"error":"k > n"}` {
		t.Errorf("no task with enough runs is written as %s (%v)", text, err)
	}
	saturated := must[AtK](t)(OverTasks([]Tally{{N: 5, C: 1}}, 5, .95, PassAtK))
	if len(saturated.Warnings) == 0 || saturated.Interval.Lo != 0 || saturated.Interval.Hi != 1 {
		t.Errorf("one task with k = n: %+v, want a warning and no knowledge", saturated)
	}
	scores := must[AtK](t)(ScoreAtKOverTasks([][]float64{{.5, 1}, {.5, 1}, {0}}, 2, .95))
	if scores.Tasks != 2 || scores.Interval.Est != 1 || scores.Interval.Lo >= 1 {
		t.Errorf("score@2: %+v, want 1 with a lower limit below it", scores)
	}
}

func TestAllPassAndAllFailKeepAnHonestWidth(t *testing.T) {
	for _, outcome := range []float64{0, 1} {
		tasks := make([][]float64, 10)
		for i := range tasks {
			tasks[i] = []float64{outcome, outcome, outcome}
		}
		got := must[Interval](t)(PassRate(tasks, .95))
		if got.Width() < .2 || got.Est != outcome {
			t.Errorf("ten tasks that all scored %v: [%v, %v]", outcome, got.Lo, got.Hi)
		}
	}
	single := must[Interval](t)(PassRate([][]float64{{1, 1, 1}}, .95))
	if single.Lo != 0 || single.Hi != 1 || single.Method != MethodNone {
		t.Errorf("one task: %+v, want nothing known about others", single)
	}
}

func TestPlanningWithMoney(t *testing.T) {
	design := Design{Between: .10, WithinCandidate: .12, WithinBaseline: .12}
	free := must[Plan](t)(Allocate(200, 0, design, Prices{PerRun: 1}))
	if free.Runs != 1 || free.Tasks != 100 {
		t.Errorf("when tasks are free the plan is %+v, want all money in tasks", free)
	}
	capped := must[Plan](t)(Allocate(200, 20, design, Prices{PerRun: 1}))
	if capped.Tasks != 20 || capped.Runs != 5 || capped.Cost > 200 {
		t.Errorf("with 20 tasks at most the plan is %+v, want 5 runs each", capped)
	}
	decision := must[Plan](t)(CostOfDecision(.2, MinClaimTasks, 0, design, Prices{PerTask: 10, PerRun: 1}))
	if decision.Power < .8 || decision.MDE > .2 {
		t.Errorf("the plan for 20 points is %+v", decision)
	}
	for runs := 1; runs <= 10; runs++ {
		design.RunsCandidate, design.RunsBaseline = runs, runs
		tasks := math.Ceil(must[float64](t)(TasksNeeded(.2, design)))
		if cost := tasks * (10 + 2*float64(runs)); cost < decision.Cost {
			t.Errorf("%d runs × %g tasks cost %g, less than the plan's %g", runs, tasks, cost, decision.Cost)
		}
	}
	if runs := must[float64](t)(RunsNeeded(.1, 20, design)); !math.IsInf(runs, 1) {
		t.Errorf("20 tasks show 10 points with %v runs, want never", runs)
	}
}

func TestErrorCorrelationOfAPanel(t *testing.T) {
	wrong := [][]bool{{true, true, false, false}, {true, true, false, false}, {true, false, true, false}}
	// One pair errs together (φ = 1), the other two independently (φ = 0).
	wantNear(t, "mean error correlation", must[float64](t)(ErrorCorrelation(wrong)), 1.0/3)
	if _, err := ErrorCorrelation([][]bool{{false}, {false}}); err == nil {
		t.Error("the correlation of judges that never err is given")
	}
}

// TestMarginsHoldWhereNothingDiffers: with all tasks tied, a margin is shown only if a loss of that
// size on each task would have been seen in 97.5 of 100 experiments, and non-inferiority then, too.
func TestMarginsHoldWhereNothingDiffers(t *testing.T) {
	t.Parallel()
	for _, tasks := range []int{12, 20, 40} {
		pairs := make([]Pair, tasks)
		for i := range pairs {
			pairs[i] = Pair{Task: fmt.Sprint(i), Candidate: []float64{1, 1}, Baseline: []float64{1, 1}}
		}
		comparison := must[Comparison](t)(measured(pairs, CompareConfig{}))
		least := 1 - math.Pow(0.025, 1/float64(tasks))
		for _, margin := range []float64{least - 0.001, least + 0.001} {
			decision := must[Decision](t)(Decide(comparison, DecideConfig{Margin: margin, NonInferior: margin}))
			equivalent, shown := decision.Claim == Equivalent, decision.NonInferior.Shown
			if want := margin > least; equivalent != want || shown != want {
				t.Errorf("%d tasks, margin %.3f: equivalent %t, not inferior %t, want %t (%s)", tasks, margin,
					equivalent, shown, want, decision.NonInferior.Text())
			}
		}
	}
}
