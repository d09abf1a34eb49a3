package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func drawCounts(t *rapid.T) (k, n int) {
	n = rapid.IntRange(1, 300).Draw(t, "n")
	return rapid.IntRange(0, n).Draw(t, "k"), n
}

func TestProportionIntervalsHoldTheirEstimateAndMirror(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, n := drawCounts(t)
		level := rapid.Float64Range(.5, .999).Draw(t, "level")
		for _, method := range []string{MethodWilson, MethodClopperPearson, MethodJeffreys} {
			got, err := Proportion(k, n, level, method)
			if err != nil {
				t.Fatal(err)
			}
			mirror, _ := Proportion(n-k, n, level, method)
			if got.Lo < 0 || got.Hi > 1 || got.Lo > got.Hi {
				t.Fatalf("%s: limits [%v, %v]", method, got.Lo, got.Hi)
			}
			if math.Abs(got.Lo-(1-mirror.Hi)) > 1e-7 {
				t.Fatalf("%s: %d/%d starts at %v but its mirror image ends at %v", method, k, n, got.Lo, mirror.Hi)
			}
			if method != MethodJeffreys && !got.Contains(got.Est) {
				t.Fatalf("%s: estimate %v outside [%v, %v]", method, got.Est, got.Lo, got.Hi)
			}
			wider, _ := Proportion(k, n, level+(1-level)/2, method)
			if wider.Width() < got.Width()-1e-9 {
				t.Fatalf("%s: a higher level gives a shorter interval", method)
			}
			if k < n {
				next, _ := Proportion(k+1, n, level, method)
				if next.Lo < got.Lo-1e-9 || next.Hi < got.Hi-1e-9 {
					t.Fatalf("%s: one more success moves the interval down", method)
				}
			}
		}
		exact, _ := ClopperPearson(k, n, level)
		if tail := 1 - (distuv.Binomial{N: float64(n), P: exact.Lo}).CDF(float64(k-1)); k > 0 &&
			math.Abs(tail-(1-level)/2) > 1e-6 {
			t.Fatalf("at the exact lower limit P(X ≥ %d) = %v, want %v", k, tail, (1-level)/2)
		}
	})
}

func TestPassAtKProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, n := drawCounts(t)
		k := rapid.IntRange(1, n).Draw(t, "k")
		anyPass, err := PassAtK(n, c, k)
		if err != nil {
			t.Fatal(err)
		}
		allPass, _ := PassHatK(n, c, k)
		rate := float64(c) / float64(n)
		if anyPass < rate-1e-12 || allPass > rate+1e-12 || anyPass > 1 || allPass < 0 {
			t.Fatalf("pass^k %v ≤ rate %v ≤ pass@k %v does not hold", allPass, rate, anyPass)
		}
		if failing, _ := PassHatK(n, n-c, k); math.Abs(anyPass-(1-failing)) > 1e-12 {
			t.Fatalf("pass@k %v is not 1 − the chance that all fail %v", anyPass, failing)
		}
		if naive := 1 - math.Pow(1-rate, float64(k)); anyPass < naive-1e-12 {
			t.Fatalf("pass@k %v below the biased formula %v", anyPass, naive)
		}
		if n <= 60 {
			want := 1.0
			if n-c >= k {
				want = 1 - math.Exp(combin.LogGeneralizedBinomial(float64(n-c),
					float64(k))-combin.LogGeneralizedBinomial(float64(n), float64(k)))
			}
			if math.Abs(anyPass-want) > 1e-9 {
				t.Fatalf("pass@k %v, by binomials %v", anyPass, want)
			}
		}
		scores := make([]float64, n)
		for i := range c {
			scores[i] = 1
		}
		if best, _ := ScoreAtK(scores, k); math.Abs(best-anyPass) > 1e-12 {
			t.Fatalf("score@k of 0/1 scores %v, pass@k %v", best, anyPass)
		}
		if last, _ := PassAtK(n, c, n); last != 0 && last != 1 {
			t.Fatalf("pass@n is %v, want 0 or 1", last)
		}
		if k < n {
			if more, _ := PassAtK(n, c, k+1); more < anyPass-1e-12 {
				t.Fatal("pass@k falls with k")
			}
		}
	})
}

func TestScoreAtKIsTheExpectedMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 7).Draw(t, "scores")
		k := rapid.IntRange(1, len(scores)).Draw(t, "k")
		total := 0.0
		subsets := combin.Combinations(len(scores), k)
		for _, subset := range subsets {
			best := math.Inf(-1)
			for _, index := range subset {
				best = math.Max(best, scores[index])
			}
			total += best
		}
		got, err := ScoreAtK(scores, k)
		if err != nil || math.Abs(got-total/float64(len(subsets))) > 1e-12 {
			t.Fatalf("score@%d = %v (%v), over all subsets %v", k, got, err, total/float64(len(subsets)))
		}
	})
}

func drawPairs(t *rapid.T) []Pair {
	tasks := rapid.IntRange(1, 25).Draw(t, "tasks")
	runs := rapid.IntRange(1, 4).Draw(t, "runs")
	outcome := rapid.SampledFrom([]float64{0, 1})
	if rapid.Bool().Draw(t, "graded") {
		outcome = rapid.SampledFrom([]float64{0, .25, .5, .75, 1})
	}
	pairs := make([]Pair, tasks)
	for i := range pairs {
		pairs[i].Candidate = rapid.SliceOfN(outcome, runs, runs).Draw(t, "candidate")
		pairs[i].Baseline = rapid.SliceOfN(outcome, runs, runs).Draw(t, "baseline")
	}
	return pairs
}

func TestSwappingTheArmsMirrorsTheComparison(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := drawPairs(t)
		swapped := make([]Pair, len(pairs))
		for i, pair := range pairs {
			swapped[i] = Pair{Candidate: pair.Baseline, Baseline: pair.Candidate}
		}
		one, err := measured(pairs, CompareConfig{Replicates: 1000})
		if err != nil {
			t.Fatal(err)
		}
		other, err := measured(swapped, CompareConfig{Replicates: 1000})
		if err != nil {
			t.Fatal(err)
		}
		same := func(what string, a, b float64) {
			if math.Abs(a-b) > 1e-9 {
				t.Fatalf("%s: %v against %v after swapping", what, a, b)
			}
		}
		same("effect", one.Est, -other.Est)
		same("lower limit", one.Interval.Lo, -other.Interval.Hi)
		same("p", one.P, other.P)
		same("detectable effect", one.MDE, other.MDE)
		if !one.Interval.Contains(one.Est) || one.P < 0 || one.P > 1 || one.Interval.Lo < -1 || one.Interval.Hi > 1 {
			t.Fatalf("impossible comparison %+v", one)
		}
		first, _ := Decide(one, DecideConfig{})
		mirrored, _ := Decide(other, DecideConfig{})
		if (first.Claim == Improved) != (mirrored.Claim == Regressed) || first.Sentence == "" {
			t.Fatalf("claims %s and %s after swapping", first.Claim, mirrored.Claim)
		}
	})
}

func TestRandomSignFlipsAgreeWithAllOfThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		differences := rapid.SliceOfN(rapid.Float64Range(-1, 1), 2, 12).Draw(t, "differences")
		exact, err := signFlip(differences, signFlipConfig{})
		if err != nil {
			t.Fatal(err)
		}
		reaches := reachesObserved(differences)
		hits := randomFlips(differences, 20_000, newSource(1), reaches)
		sampled := float64(hits) / 20_000
		if math.Abs(sampled-exact.P) > 5*math.Sqrt(exact.P*(1-exact.P)/20_000)+1e-3 {
			t.Fatalf("exact p %v, sampled %v", exact.P, sampled)
		}
	})
}

// TestManyTasksOnALatticeHaveAnExactP: twenty and more tasks with several runs have the p-value
// that all sign patterns give, whatever the seed.
func TestManyTasksOnALatticeHaveAnExactP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SampledFrom([]int{1, 2, 3, 5, 7, 12}).Draw(t, "runs")
		others := rapid.SampledFrom([]int{1, 3, 4, 5}).Draw(t, "the other arm's runs")
		passes := rapid.SliceOfN(rapid.IntRange(0, runs), 2, 16).Draw(t, "passes")
		var differences []float64
		for _, n := range passes {
			other := rapid.IntRange(0, others).Draw(t, "other passes")
			differences = append(differences, snapToZero(float64(n)/float64(runs)-float64(other)/float64(others)))
		}
		hits := enumerateFlips(differences, reachesObserved(differences))
		want := float64(hits) / float64(int(1)<<len(differences))
		got, err := signFlip(differences, signFlipConfig{})
		if err != nil || math.Abs(got.P-want) > 1e-9 || got.Draws != 0 {
			t.Fatalf("%+v, %v, want %v", got, err, want)
		}
	})
	many := make([]float64, 400)
	for i := range many {
		many[i] = float64(i%11-4) / 15
	}
	one := must[signFlipResult](t)(signFlip(many, signFlipConfig{Seed: 1}))
	other := must[signFlipResult](t)(signFlip(many, signFlipConfig{Seed: 2}))
	if one != other || one.Draws != 0 {
		t.Errorf("400 tasks on a lattice: %+v and %+v with another seed", one, other)
	}
}

// TestADrawnPIsOnOneSideOfTheLevel: where p must be drawn and is near the level of a claim, it is
// drawn for long enough that seeds agree.
func TestADrawnPIsOnOneSideOfTheLevel(t *testing.T) {
	random := rand.New(newSource(1))
	for range 3 {
		exact, differences := 0.0, make([]float64, maxExactFlips+4)
		for exact < 0.047 || exact > 0.0485 {
			for i := range differences {
				differences[i] = random.Float64() - 0.35
			}
			reaches := reachesObserved(differences)
			if p := must[signFlipResult](t)(signFlip(differences, signFlipConfig{})).P; p > 0.045 && p < 0.05 {
				exact = float64(enumerateFlips(differences, reaches)) / float64(int(1)<<len(differences))
			}
		}
		for seed := range uint64(5) {
			config := signFlipConfig{Seed: seed, Thresholds: []float64{0.05}}
			drawn := must[signFlipResult](t)(signFlip(differences, config))
			if drawn.P >= 0.05 || drawn.Draws <= defaultReplicates {
				t.Errorf("exact %v, drawn %+v with seed %d", exact, drawn, seed)
			}
		}
	}
}

func TestSignFlipOfWinsAndLossesIsMcNemar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wins, losses := rapid.IntRange(0, 9).Draw(t, "wins"), rapid.IntRange(0, 9).Draw(t, "losses")
		differences := make([]float64, 0, 20)
		for range wins {
			differences = append(differences, 1)
		}
		for range losses {
			differences = append(differences, -1)
		}
		differences = append(differences, 0)
		flips, err := signFlip(differences, signFlipConfig{})
		if err != nil {
			t.Fatal(err)
		}
		test, _ := McNemar(wins, losses)
		if math.Abs(flips.P-test.P) > 1e-12 || test.PMid > test.P {
			t.Fatalf("sign flips give %v, McNemar %v (mid-p %v)", flips.P, test.P, test.PMid)
		}
	})
}

func TestAdjustedPValuesKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 30).Draw(t, "p")
		holm, err := Holm(p)
		if err != nil {
			t.Fatal(err)
		}
		bh, _ := BenjaminiHochberg(p)
		for i := range p {
			if holm[i] < bh[i]-1e-12 || bh[i] < p[i]-1e-12 || holm[i] > 1 {
				t.Fatalf("p %v, BH %v, Holm %v", p[i], bh[i], holm[i])
			}
			for j := range p {
				if p[i] < p[j] && (holm[i] > holm[j] || bh[i] > bh[j]) {
					t.Fatalf("adjusting turned %v and %v around", p[i], p[j])
				}
			}
		}
	})
}

func TestMomentsAgreeWithGonum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-100, 100), 2, 50).Draw(t, "values")
		mean, variance := moments(values)
		wantMean, wantVariance := stat.MeanVariance(values, nil)
		if math.Abs(mean-wantMean) > 1e-9 || math.Abs(variance-wantVariance) > 1e-7 {
			t.Fatalf("moments %v, %v; gonum %v, %v", mean, variance, wantMean, wantVariance)
		}
	})
}

func TestEProcessesAreFairGames(t *testing.T) {
	// The expected evidence after one more fair task is the evidence now: nothing can be won under
	// the null hypothesis.
	rapid.Check(t, func(t *rapid.T) {
		wins, losses := rapid.IntRange(0, 60).Draw(t, "wins"), rapid.IntRange(0, 60).Draw(t, "losses")
		now, err := DiscordantEValue(wins, losses)
		if err != nil {
			t.Fatal(err)
		}
		won, _ := DiscordantEValue(wins+1, losses)
		lost, _ := DiscordantEValue(wins, losses+1)
		if math.Abs((won+lost)/2-now) > 1e-9*now {
			t.Fatalf("E(%d, %d) = %v, expected next %v", wins, losses, now, (won+lost)/2)
		}
		history := rapid.SliceOfN(rapid.Float64Range(-1, 1), 0, 20).Draw(t, "history")
		step := rapid.Float64Range(0, 1).Draw(t, "step")
		var up, down boundedProcess
		for _, difference := range history {
			_, _ = up.Add(difference), down.Add(difference)
		}
		before := up.E()
		_, _ = up.Add(step), down.Add(-step)
		if math.Abs((up.E()+down.E())/2-before) > 1e-9*before {
			t.Fatalf("wealth %v, expected next %v", before, (up.E()+down.E())/2)
		}
	})
}

func TestConfidenceSequencesExcludeZeroExactlyWhenStopped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := drawPairs(t)
		for range 2 {
			pairs = append(pairs, pairs...)
		}
		comparison, err := measuredSequential(pairs)
		if err != nil {
			t.Fatal(err)
		}
		stopped := *comparison.EValue >= 20
		excluded := comparison.Interval.Excludes(0)
		if stopped != excluded && math.Abs(*comparison.EValue-20) > 1e-6 &&
			comparison.Interval.Contains(comparison.Est) && !straddles(comparison) {
			t.Fatalf("e-value %v but interval [%v, %v] around %v", *comparison.EValue, comparison.Interval.Lo,
				comparison.Interval.Hi, comparison.Est)
		}
	})
}

// straddles is the rare case in which early evidence pointed one way and the mean has since moved
// to or past zero.
func straddles(c Comparison) bool {
	return math.Abs(c.Est) < 1e-9 || c.Interval.Lo == c.Est || c.Interval.Hi == c.Est
}

func TestLangReiczigelFollowsItsInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, n := drawCounts(t)
		m1, m0 := rapid.IntRange(5, 100).Draw(t, "m1"), rapid.IntRange(5, 100).Draw(t, "m0")
		calibration := Calibration{
			TP: rapid.IntRange(0, m1).Draw(t, "tp"), M1: m1,
			TN: rapid.IntRange(0, m0).Draw(t, "tn"), M0: m0,
		}
		got, err := langReiczigel(float64(k), float64(n), calibration, .95)
		if calibration.Youden() <= 0 {
			if err == nil {
				t.Fatal("a judge no better than a coin got an interval")
			}
			return
		}
		if calibration.Youden() > 1e-9 && err != nil {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if !(got.Lo >= 0 && got.Hi <= 1) || !got.Contains(got.Est) {
			t.Fatalf("[%v, %v] around %v", got.Lo, got.Hi, got.Est)
		}
		wins := rapid.IntRange(0, n-k).Draw(t, "wins")
		gap, err := pairedCorrectedDifference(wins, k, n, calibration, .95)
		if err != nil || !(gap.Lo <= gap.Est && gap.Est <= gap.Hi) {
			t.Fatalf("difference %v in [%v, %v] (%v)", gap.Est, gap.Lo, gap.Hi, err)
		}
		own, err := perAgentCorrectedDifference(pairedTable{FirstOnly: wins, SecondOnly: k, Neither: n - k - wins},
			calibration, calibration, .95)
		if err != nil || !(own.Lo >= -1 && own.Hi <= 1) {
			t.Fatalf("difference %v in [%v, %v] (%v)", own.Est, own.Lo, own.Hi, err)
		}
	})
}

func TestAgreementIsOneForEqualRatersAndSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(1, 50).Draw(t, "a"), rapid.IntRange(1, 50).Draw(t, "b")
		x, y := rapid.IntRange(0, 50).Draw(t, "x"), rapid.IntRange(0, 50).Draw(t, "y")
		for name, coefficient := range map[string]func([][]int) (Kappa, error){"kappa": CohenKappa, "AC1": GwetAC1} {
			perfect, err := coefficient([][]int{{a, 0}, {0, b}})
			if err != nil || math.Abs(perfect.Value-1) > 1e-12 {
				t.Fatalf("%s of equal raters is %v (%v)", name, perfect.Value, err)
			}
			one, _ := coefficient([][]int{{a, x}, {y, b}})
			other, _ := coefficient([][]int{{a, y}, {x, b}})
			if math.Abs(one.Value-other.Value) > 1e-12 || one.Value > 1 || one.Value < -1 {
				t.Fatalf("%s is %v, with raters swapped %v", name, one.Value, other.Value)
			}
		}
	})
}

func TestPlanningFunctionsAgree(t *testing.T) {
	for _, tasks := range []int{12, 40, 1000} {
		design := Design{Between: .05, WithinCandidate: .15, WithinBaseline: .1, RunsCandidate: 3, RunsBaseline: 3}
		mde := must[float64](t)(MinimumDetectableEffect(tasks, design))
		if more := must[float64](t)(MinimumDetectableEffect(2*tasks, design)); more >= mde {
			t.Errorf("%d tasks detect %v, twice as many %v", tasks, mde, more)
		}
		wantWithin(t, "power at the detectable effect", must[float64](t)(PowerOf(mde, tasks, design)), .8, .015)
		needed := must[float64](t)(TasksNeeded(mde, design))
		wantWithin(t, "tasks for that effect", needed/float64(tasks), 1, .1)
		if runs := must[float64](t)(RunsNeeded(.999*mde, tasks, design)); runs < 3 || runs > 4 {
			t.Errorf("%d tasks need %v runs for what 3 runs detect", tasks, runs)
		}
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one := func(x float64) []Pair {
		return []Pair{
			{Candidate: []float64{x}, Baseline: []float64{0}},
			{Candidate: []float64{1}, Baseline: []float64{0}},
		}
	}
	good := Calibration{TP: 9, M1: 10, TN: 9, M0: 10}
	design := Design{Between: .1}
	prices := Prices{PerRun: 1}
	for name, err := range map[string]error{
		"Wilson of nothing":          second(Wilson(0, 0, .95)),
		"Wilson of k > n":            second(Wilson(3, 2, .95)),
		"Wilson of negative k":       second(Wilson(-1, 2, .95)),
		"Wilson at level 1":          second(Wilson(1, 2, 1)),
		"Wilson at level NaN":        second(Wilson(1, 2, nan)),
		"unknown proportion method":  second(Proportion(1, 2, .95, "wald")),
		"clusters with an empty one": second(PassRate([][]float64{{1}, {}}, .95)),
		"pass rate of 2":             second(PassRate([][]float64{{2}, {0}}, .95)),
		"task mean of NaN":           second(TaskMean([]float64{nan}, .95)),
		"bootstrap of NaN":           second(bootstrapMean([]float64{1, nan}, bootstrapConfig{})),
		"bootstrap of one":           second(bootstrapMean([]float64{1}, bootstrapConfig{})),
		"too few replicates":         second(bootstrapMean([]float64{1, 2}, bootstrapConfig{Replicates: 10})),
		"unknown bootstrap":          second(bootstrapMean([]float64{1, 2}, bootstrapConfig{Method: "magic"})),
		"pass@0":                     second(PassAtK(5, 2, 0)),
		"pass@k with c > n":          second(PassAtK(5, 6, 1)),
		"score@k of NaN":             second(ScoreAtK([]float64{nan}, 1)),
		"score@k of Inf":             second(ScoreAtK([]float64{inf}, 1)),
		"score@k of nothing":         second(ScoreAtK(nil, 1)),
		"pass@k over no tasks":       second(OverTasks(nil, 1, .95, PassAtK)),
		"comparison of nothing":      second(Compare(nil, CompareConfig{})),
		"comparison of NaN":          second(Compare(one(nan), CompareConfig{})),
		"comparison of Inf":          second(Compare(one(inf), CompareConfig{})),
		"ratio of zero":              second(CompareRatio(one(1), CompareConfig{})),
		"forced bootstrap of two": second(Compare([]Pair{
			{Candidate: []float64{.5}, Baseline: []float64{0}},
			{Candidate: []float64{.1}, Baseline: []float64{0}},
		}, CompareConfig{Interval: MethodBCa})),
		"sequential beyond [0, 1]":    second(CompareSequential(one(2), CompareConfig{})),
		"sign flips of NaN":           second(signFlip([]float64{nan}, signFlipConfig{})),
		"sign flips of nothing":       second(signFlip(nil, signFlipConfig{})),
		"negative discordance":        second(McNemar(-1, 2)),
		"more discordance than tasks": second(BonettPrice(3, 3, 5, .95)),
		"Fisher of k > n":             second(FisherExact(3, 2, 1, 2)),
		"Holm of 2":                   second(Holm([]float64{2})),
		"Holm of NaN":                 second(Holm([]float64{nan})),
		"BH of -1":                    second(BenjaminiHochberg([]float64{-1})),
		"e-value of negative wins":    second(DiscordantEValue(-1, 0)),
		"bet on NaN":                  new(boundedProcess).Add(nan),
		"bet on 2":                    new(boundedProcess).Add(2),
		"correction of k > n":         second(CorrectRate(3, 2, 0, good, .95)),
		"correction of tp > m1":       second(CorrectRate(1, 2, 0, Calibration{TP: 11, M1: 10, TN: 9, M0: 10}, .95)),
		"correction with NaN runs":    second(CorrectRate(1, 2, nan, good, .95)),
		"Lang–Reiczigel of NaN":       second(langReiczigel(nan, 10, good, .95)),
		"labels of NaN":               second(PPIPlusPlus([]Label{{nan, 1}, {1, 1}}, []float64{1, 0}, .95)),
		"homogeneity of one":          second(Homogeneity([]Calibration{good})),
		"effect of zero":              second(TasksNeeded(0, design)),
		"effect of NaN":               second(TasksNeeded(nan, design)),
		"negative variance":           second(TasksNeeded(.1, Design{Between: -1})),
		"no variance at all":          second(TasksNeeded(.1, Design{})),
		"no tasks":                    second(MinimumDetectableEffect(0, design)),
		"no money":                    second(Allocate(0, 0, design, prices)),
		"too little money":            second(Allocate(1, 0, design, prices)),
		"free runs":                   second(Allocate(1, 0, design, Prices{})),
		"effect out of reach":         second(CostOfDecision(.001, 10, 20, design, prices)),
		"kappa of nothing":            second(CohenKappa(nil)),
		"kappa of a ragged table":     second(CohenKappa([][]int{{1, 2}, {3}})),
		"kappa of one category":       second(CohenKappa([][]int{{5, 0}, {0, 0}})),
		"Fleiss with unequal raters":  second(FleissKappa([][]int{{2, 1}, {2, 0}})),
		"alpha without pairs":         second(KrippendorffAlpha([][]int{{1, 0}, {0, 1}})),
		"votes of no judge":           second(EffectiveVotes(0, .2)),
		"impossible correlation":      second(EffectiveVotes(5, -.9)),
		"decision without tasks":      second(Decide(Comparison{P: 1}, DecideConfig{})),
		"decision at alpha 2":         second(Decide(Comparison{P: 1, Tasks: 10}, DecideConfig{Alpha: 2})),
		"decision with p NaN":         second(Decide(Comparison{P: nan, Tasks: 10}, DecideConfig{})),
		"decision with odd exclusions": second(Decide(Comparison{P: 1, Tasks: 10},
			DecideConfig{Candidate: Exclusion{Excluded: 2, Planned: 1}})),
	} {
		t.Run(name, func(t *testing.T) {
			if err == nil {
				t.Errorf("%s is accepted", name)
			}
		})
	}
	if _, err := Compare(nil, CompareConfig{}); !errors.Is(err, ErrNoData) {
		t.Errorf("an empty comparison gives %v, want ErrNoData", err)
	}
}
