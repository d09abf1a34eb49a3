package stats

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

func TestProportionIntervalsMatchPublishedValues(t *testing.T) {
	for _, row := range []struct {
		k, n                    int
		wilson, exact, jeffreys [2]float64
	}{
		{3, 3, [2]float64{.438503, 1}, [2]float64{.292402, 1}, [2]float64{.464417, .999849}},
		{0, 3, [2]float64{0, .561497}, [2]float64{0, .707598}, [2]float64{.000151, .535583}},
		{2, 3, [2]float64{.207660, .938508}, [2]float64{.094299, .991596}, [2]float64{.176736, .961252}},
		{7, 10, [2]float64{.396778, .892209}, [2]float64{.347547, .933260}, [2]float64{.394182, .907305}},
		{0, 10, [2]float64{0, .277533}, [2]float64{0, .308497}, [2]float64{.000048, .217196}},
		{21, 30, [2]float64{.521242, .833353}, [2]float64{.506041, .852655}, [2]float64{.523456, .840007}},
		{45, 50, [2]float64{.786398, .956524}, [2]float64{.781865, .966725}, [2]float64{.794645, .960806}},
	} {
		t.Run(fmt.Sprintf("%d of %d", row.k, row.n), func(t *testing.T) {
			for method, want := range map[string][2]float64{
				MethodWilson: row.wilson, MethodClopperPearson: row.exact,
				MethodJeffreys: row.jeffreys,
			} {
				got := must[Interval](t)(Proportion(row.k, row.n, 0.95, method))
				wantLimits(t, method, got, want[0], want[1])
				wantNear(t, method+" estimate", got.Est, float64(row.k)/float64(row.n))
				if got.Method != method {
					t.Errorf("method is %q, want %q", got.Method, method)
				}
			}
		})
	}
	for k, want := range map[int][2]float64{3: {.23, .88}, 0: {0, .43}, 5: {.57, 1}} {
		got := must[Interval](t)(Wilson(k, 5, 0.95))
		wantWithin(t, "Wilson of five lower limit", got.Lo, want[0], 0.005)
		wantWithin(t, "Wilson of five upper limit", got.Hi, want[1], 0.005)
	}
}

func TestFisherOnThreeRunsProvesNothing(t *testing.T) {
	for _, row := range []struct {
		k1, n1, k2, n2 int
		p              float64
	}{{3, 3, 0, 3, .10}, {4, 4, 0, 4, .028571}, {5, 5, 1, 5, .047619}, {5, 5, 0, 5, .007937}} {
		got := must[float64](t)(FisherExact(row.k1, row.n1, row.k2, row.n2))
		wantNear(t, fmt.Sprintf("Fisher %d/%d against %d/%d", row.k1, row.n1, row.k2, row.n2), got, row.p)
	}
}

// sixTasks is the worked example of a paired comparison: six tasks, three runs per arm.
func sixTasks() []Pair {
	a := []string{"111", "110", "101", "000", "111", "100"}
	b := []string{"101", "100", "000", "000", "111", "001"}
	pairs := make([]Pair, len(a))
	for i := range a {
		pairs[i] = Pair{Candidate: bits01(a[i]), Baseline: bits01(b[i])}
	}
	return pairs
}

func TestPairedComparisonOfSixTasks(t *testing.T) {
	got := must[Comparison](t)(Compare(sixTasks(), CompareConfig{}))
	wantNear(t, "candidate mean", got.CandidateMean, .611111)
	wantNear(t, "baseline mean", got.BaselineMean, .388889)
	wantNear(t, "difference", got.Est, .222222)
	wantNear(t, "standard deviation", got.SD, .272166)
	wantNear(t, "standard error", got.SE, .111111)
	wantLimits(t, "t interval", *got.Interval, -.063398, .507842)
	wantNear(t, "sign-flip p", got.P, .25)
	if got.Method != MethodSignFlip || got.Interval.Method != MethodT || !got.Exact {
		t.Errorf("method %s with interval %s (exact %v), want an exact signflip with t under 15 tasks", got.Method,
			got.Interval.Method, got.Exact)
	}
	wantNear(t, "t quantile with 5 degrees of freedom", studentQuantile(.95, 5), 2.570582)
	_, unclamped, err := VarianceComponents(sixTasks())
	if err != nil {
		t.Fatal(err)
	}
	wantNear(t, "moment estimate of the variance between tasks", unclamped, -.037037)
}

func TestExactClusterBootstrapOfSixTasks(t *testing.T) {
	third := 1.0 / 3
	differences := []float64{third, third, 2 * third, 0, 0, 0}
	counts := map[int]int{}
	// All 6^6 resamples, as sums in thirds.
	for code := range 46656 {
		sum := 0
		for rest, i := code, 0; i < 6; i++ {
			sum += int(math.Round(3 * differences[rest%6]))
			rest /= 6
		}
		counts[sum]++
	}
	var sorted []float64
	for sum := range 13 {
		for range counts[sum] {
			sorted = append(sorted, float64(sum)/18)
		}
	}
	wantNear(t, "exact lower limit", sortedQuantile(sorted, .025), .055556)
	wantNear(t, "exact upper limit", sortedQuantile(sorted, .975), .444444)
	sampled := must[Interval](t)(bootstrapMean(differences,
		bootstrapConfig{Method: MethodPercentile, Replicates: 46656, Seed: 1}))
	wantLimits(t, "sampled percentile bootstrap", sampled, .055556, .444444)
	if len(sampled.Warnings) == 0 {
		t.Error("a bootstrap of six tasks carries no warning")
	}
}

func TestClusteredStandardError(t *testing.T) {
	var clusters [][]float64
	for _, pair := range sixTasks() {
		clusters = append(clusters, pair.Candidate)
	}
	_, se := clusterMean(clusters)
	wantNear(t, "clustered standard error", se, .159087)
}

func TestMcNemarVectors(t *testing.T) {
	for _, row := range []struct {
		b, c    int
		p, pMid float64
	}{
		{9, 2, .065430, .038574},
		{6, 0, .03125, .015625},
		{5, 0, .0625, .03125},
		{12, 4, .076813, .049042},
		{3, 3, 1, 1},
		{0, 0, 1, 1},
	} {
		got := must[McNemarResult](t)(McNemar(row.b, row.c))
		wantNear(t, fmt.Sprintf("exact p of (%d, %d)", row.b, row.c), got.P, row.p)
		wantNear(t, fmt.Sprintf("mid-p of (%d, %d)", row.b, row.c), got.PMid, row.pMid)
	}
	bonett := must[Interval](t)(BonettPrice(9, 2, 50, .95))
	wantLimits(t, "Bonett–Price", bonett, .003734, .265496)
	wantNear(t, "Bonett–Price standard error", bonett.SE, .066777)
	centre, _ := bonettPrice(9, 2, 50)
	wantNear(t, "Bonett–Price centre", centre, .134615)
}

func TestPassAtKVectors(t *testing.T) {
	for _, row := range []struct {
		n, c, k  int
		any, all float64
	}{
		{10, 3, 5, .916667, 0}, {5, 2, 3, .9, 0}, {8, 6, 4, 1, .214286}, {10, 3, 1, .3, .3}, {5, 2, 1, .4, .4},
	} {
		wantNear(t, fmt.Sprintf("pass@%d of %d/%d", row.k, row.c, row.n),
			must[float64](t)(PassAtK(row.n, row.c, row.k)), row.any)
		wantNear(t, fmt.Sprintf("pass^%d of %d/%d", row.k, row.c, row.n),
			must[float64](t)(PassHatK(row.n, row.c, row.k)), row.all)
	}
	for k, want := range map[int]float64{1: .75, 2: 1} {
		wantNear(t, "expected best of two scores", must[float64](t)(ScoreAtK([]float64{.5, 1}, k)), want)
	}
	for name, err := range map[string]error{
		"pass@k": second(PassAtK(3, 1, 5)), "pass^k": second(PassHatK(3, 1, 5)),
		"score@k": second(ScoreAtK([]float64{1}, 2)),
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(err, ErrKExceedsN) {
				t.Errorf("%s with k > n gives %v, want ErrKExceedsN", name, err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestPowerVectors(t *testing.T) {
	for _, row := range []struct {
		effect    float64
		design    Design
		tasks     float64
		tolerance float64
	}{
		{.03, Design{Between: 1. / 9}, 969, .5},
		{.03, Design{Between: 1. / 9, WithinCandidate: 1. / 6, WithinBaseline: 1. / 6}, 3876, .5},
		{.03, Design{
			Between: 1. / 9, WithinCandidate: 1. / 6, WithinBaseline: 1. / 6, RunsCandidate: 10,
			RunsBaseline: 10,
		}, 1260, .5},
		{.10, Design{Between: .10, WithinCandidate: .12, WithinBaseline: .12}, 267, .5},
		{
			.10,
			Design{Between: .10, WithinCandidate: .12, WithinBaseline: .12, RunsCandidate: 3, RunsBaseline: 3},
			141.3,
			.05,
		},
		{
			.20,
			Design{Between: .10, WithinCandidate: .12, WithinBaseline: .12, RunsCandidate: 3, RunsBaseline: 3},
			35.3,
			.05,
		},
	} {
		wantWithin(
			t,
			fmt.Sprintf("tasks for %g", row.effect),
			must[Design](t)(row.design.withDefaults()).approximateTasks(row.effect),
			row.tasks,
			row.tolerance,
		)
	}
	design := Design{
		Between: .10, WithinCandidate: .12, WithinBaseline: .12, RunsCandidate: 3, RunsBaseline: 3,
		Alpha: DefaultAlpha, Power: DefaultPower,
	}
	wantWithin(t, "detectable effect of 20 tasks", design.approximateEffect(20), .266, .0005)
}

func TestMultiplicityVectors(t *testing.T) {
	five := []float64{.004, .03, .02, .5, .011}
	wantAllNear(t, "Holm", must[[]float64](t)(Holm(five)), []float64{.02, .06, .06, .5, .044})
	wantAllNear(t, "BH", must[[]float64](t)(BenjaminiHochberg(five)), []float64{.02, .0375, .033333, .5, .0275})
	ten := []float64{.001, .008, .039, .041, .042, .06, .074, .205, .212, .216}
	wantAllNear(t, "Holm", must[[]float64](t)(Holm(ten)),
		[]float64{.01, .072, .312, .312, .312, .312, .312, .615, .615, .615})
	wantAllNear(t, "BH", must[[]float64](t)(BenjaminiHochberg(ten)),
		[]float64{.01, .04, .084, .084, .084, .1, .105714, .216, .216, .216})
}

func TestEProcessVectors(t *testing.T) {
	for _, row := range []struct {
		wins, losses int
		e            float64
	}{
		{1, 0, 1},
		{3, 0, 2.5},
		{5, 0, 7.875},
		{6, 0, 14.4375},
		{7, 0, 26.8125},
		{9, 1, 9.496094},
		{9, 2, 2.589844},
		{12, 3, 3.627441},
		{5, 5, .246094},
	} {
		wantNear(t, fmt.Sprintf("E(%d, %d)", row.wins, row.losses),
			must[float64](t)(DiscordantEValue(row.wins, row.losses)), row.e)
	}
	var process discordantProcess
	for win := 1; win <= 7; win++ {
		process.Add(true, false)
		if stops := process.Highest() >= 20; stops != (win == 7) {
			t.Errorf("after %d wins stops = %v", win, stops)
		}
	}
	third := 1. / 3
	var bets boundedProcess
	want := []float64{1, .833333, .833333, .833333, .972222, .810185, 1.215278, 1.417824, 1.654128, 2.205504}
	for i, difference := range []float64{third, -third, 2 * third, 0, third, -third, 1, third, third, 2 * third} {
		if err := bets.Add(difference); err != nil {
			t.Fatal(err)
		}
		wantNear(t, fmt.Sprintf("wealth after %d tasks", i+1), bets.bets.up.wealth(), want[i])
	}
}

func TestAgreementVectors(t *testing.T) {
	balanced := [][]int{{46, 6}, {4, 44}}
	kappa := must[Kappa](t)(CohenKappa(balanced))
	wantNear(t, "observed agreement", kappa.Observed, .90)
	wantNear(t, "expected agreement", kappa.Expected, .50)
	wantNear(t, "kappa", kappa.Value, .80)
	wantNear(t, "kappa's standard error", kappa.SE, .06)
	imbalanced := [][]int{{90, 4}, {4, 2}}
	wantNear(t, "observed agreement", must[Kappa](t)(CohenKappa(imbalanced)).Observed, .92)
	wantNear(t, "kappa when passes dominate", must[Kappa](t)(CohenKappa(imbalanced)).Value, .290780)
	wantNear(t, "AC1 when passes dominate", must[Kappa](t)(GwetAC1(imbalanced)).Value, .909829)
	fleiss := must[Kappa](t)(FleissKappa([][]int{
		{3, 0},
		{3, 0},
		{2, 1},
		{0, 3},
		{1, 2},
		{3, 0},
		{0, 3},
		{3, 0},
		{2, 1},
		{0, 3},
	}))
	wantNear(t, "Fleiss observed", fleiss.Observed, .8)
	wantNear(t, "Fleiss expected", fleiss.Expected, .508889)
	wantNear(t, "Fleiss kappa", fleiss.Value, .592760)
	// The example of Krippendorff's own tutorial (nominal data, four observers, missing values).
	alpha := must[Kappa](t)(KrippendorffAlpha(krippendorffExample()))
	wantWithin(t, "Krippendorff alpha", alpha.Value, .743, .0005)
}

// krippendorffExample has 12 units, four observers, categories 1 to 5; 0 is a missing value.
func krippendorffExample() [][]int {
	observers := [][]int{
		{1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0},
		{1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3},
		{0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0},
		{1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0},
	}
	counts := make([][]int, 12)
	for unit := range counts {
		counts[unit] = make([]int, 5)
		for _, ratings := range observers {
			if ratings[unit] > 0 {
				counts[unit][ratings[unit]-1]++
			}
		}
	}
	return counts
}

func TestPanelVectors(t *testing.T) {
	for _, row := range []struct {
		judges      int
		correlation float64
		votes       float64
	}{{9, .4375, 2}, {3, .5, 1.5}, {3, .2, 2.142857}} {
		wantNear(t, "effective votes", must[float64](t)(EffectiveVotes(row.judges, row.correlation)), row.votes)
	}
}

func TestPositionSwapVector(t *testing.T) {
	const a, b, tie = WinnerA, WinnerB, WinnerT
	views := []SwapView{{a, a}, {a, b}, {b, b}, {a, tie}, {tie, tie}, {b, a}, {a, a}, {a, b}, {b, b}, {a, a}}
	summary := must[SwapSummary](t)(SummariseSwaps(views))
	if summary.Decisive != 8 || summary.Flips != 3 || summary.A != 3 || summary.B != 2 || summary.Ties != 5 ||
		summary.Primacy != 2 || summary.Recency != 1 {
		t.Errorf("summary = %+v", summary)
	}
	wantNear(t, "flip rate", summary.FlipRate, .375)
	wantNear(t, "first pick", summary.FirstPick, .588235)
}

func TestAllNineSwapOutcomes(t *testing.T) {
	const a, b, tie = WinnerA, WinnerB, WinnerT
	for view, want := range map[SwapView]struct {
		winner Winner
		bias   bool
	}{
		{a, a}: {a, false}, {b, b}: {b, false}, {tie, tie}: {tie, false}, {a, b}: {tie, true}, {b, a}: {tie, true},
		{a, tie}: {tie, false}, {tie, a}: {tie, false}, {b, tie}: {tie, false}, {tie, b}: {tie, false},
	} {
		if winner, bias := view.Reconcile(); winner != want.winner || bias != want.bias {
			t.Errorf("%v reconciles to %s (bias %v), want %s (%v)", view, winner, bias, want.winner, want.bias)
		}
	}
}
