package stats

import "testing"

func TestRoganGladenVectors(t *testing.T) {
	for _, row := range []struct{ p, tpr, tnr, raw, clipped float64 }{
		{.80, .92, .88, .85, .85},
		{.40, .90, .70, .166667, .166667},
		{.773, 1, .75, .697333, .697333},
		{.05, .9, .9, -.0625, 0},
		{.97, .9, .9, 1.0875, 1},
	} {
		raw, clipped, err := RoganGladen(row.p, row.tpr, row.tnr)
		if err != nil {
			t.Fatal(err)
		}
		wantNear(t, "raw rate", raw, row.raw)
		wantNear(t, "clipped rate", clipped, row.clipped)
	}
	if _, _, err := RoganGladen(.5, .5, .5); err == nil {
		t.Error("a judge no better than a coin is accepted")
	}
}

func TestLangReiczigelVectors(t *testing.T) {
	for _, row := range []struct {
		name                  string
		k, n, tp, m1, tn, m0  int
		est, theta, shift, se float64
		lo, hi                float64
	}{
		{"A", 400, 1000, 180, 200, 140, 200, .166667, .165644, -.006102, .052650, .056351, .262733},
		{"B", 400, 500, 46, 50, 44, 50, .85, .862027, .008694, .052079, .768648, .972793},
		{"C", 21, 30, 18, 20, 17, 20, .733333, .726703, .015690, .145122, .457958, 1},
		{"D", 30, 30, 20, 20, 18, 20, 1, .986186, .014375, .072319, .858819, 1},
		{"E", 1, 30, 18, 20, 17, 20, 0, -.140084, -.064989, .155385, 0, .099476},
		{"F", 39, 60, 36, 40, 34, 40, .666667, .664031, .004203, .099773, .472681, .863786},
		{"G", 39, 60, 26, 40, 20, 40, 1, .986820, .040842, .661454, 0, 1},
		{"H", 5000, 10000, 4500, 5000, 4500, 5000, .5, .5, 0, .007292, .485709, .514291},
	} {
		t.Run(row.name, func(t *testing.T) {
			calibration := Calibration{TP: row.tp, M1: row.m1, TN: row.tn, M0: row.m0}
			got := must[langReiczigelResult](t)(langReiczigel(float64(row.k), float64(row.n), calibration, .95))
			wantNear(t, "estimate", got.Est, row.est)
			wantNear(t, "smoothed rate", got.Theta, row.theta)
			wantNear(t, "shift", got.Shift, row.shift)
			wantNear(t, "standard error", got.SmoothSE, row.se)
			wantLimits(t, "interval", got.Interval, row.lo, row.hi)
			if row.name == "C" {
				wantNear(t, "upper limit before clipping", got.RawHi, 1.026827)
			}
			if row.name == "E" {
				wantNear(t, "rate before clipping", got.Raw, -.155556)
			}
		})
	}
}

func TestSmoothingMayLeaveNothingOfAJudge(t *testing.T) {
	// TPR + TNR is above 1, but exactly 1 after smoothing: 7/8 + 9/72.
	got := must[langReiczigelResult](t)(langReiczigel(0, 1, Calibration{TP: 6, M1: 6, TN: 8, M0: 70}, .95))
	if got.Lo != 0 || got.Hi != 1 || len(got.Warnings) == 0 {
		t.Errorf("interval [%v, %v] with warnings %v, want all of [0, 1] with a warning", got.Lo, got.Hi, got.Warnings)
	}
}

func TestCorrectedRatesAreShownOnlyForInformativeJudges(t *testing.T) {
	good := must[Correction](t)(CorrectRate(21, 30, 0, Calibration{TP: 18, M1: 20, TN: 17, M0: 20}, .95))
	if good.Status != StatusOK {
		t.Errorf("18/20 and 17/20: status %q, want %q", good.Status, StatusOK)
	}
	weak := must[Correction](t)(CorrectRate(39, 60, 0, Calibration{TP: 26, M1: 40, TN: 20, M0: 40}, .95))
	if weak.Status != StatusUninformative {
		t.Errorf("26/40 and 20/40: status %q, want %q", weak.Status, StatusUninformative)
	}
	coin := must[Correction](t)(CorrectRate(5, 10, 0, Calibration{TP: 10, M1: 20, TN: 10, M0: 20}, .95))
	if coin.Status != StatusUninformative || coin.Est != nil {
		t.Errorf("a coin as judge: status %q with estimate %v, want no estimate", coin.Status, coin.Est)
	}
	none := must[Correction](t)(CorrectRate(5, 10, 0, Calibration{}, .95))
	if none.Status != StatusUncalibrated || none.Est != nil || none.Observed != .5 {
		t.Errorf("without labels: %+v, want the observed rate only", none)
	}
}

func TestClusteredVerdictsWidenTheCorrectedInterval(t *testing.T) {
	tasks := [][]float64{
		{1, 1, 1},
		{1, 1, 1},
		{1, 1, 0},
		{0, 0, 0},
		{1, 1, 1},
		{0, 0, 0},
		{1, 1, 1},
		{1, 1, 1},
		{0, 0, 1},
		{1, 1, 1},
	}
	effective := must[float64](t)(EffectiveRuns(tasks))
	if effective < 10 || effective >= 30 {
		t.Fatalf("effective runs = %v, want between the 10 tasks and the 30 runs", effective)
	}
	calibration := Calibration{TP: 18, M1: 20, TN: 17, M0: 20}
	naive := must[Correction](t)(CorrectRate(21, 30, 0, calibration, .95))
	honest := must[Correction](t)(CorrectRate(21, 30, effective, calibration, .95))
	if *honest.Lo >= *naive.Lo || *honest.Est != *naive.Est {
		t.Errorf("clustered [%v, %v] is not wider than naive [%v, %v]", *honest.Lo, *honest.Hi, *naive.Lo, *naive.Hi)
	}
}

func TestLabelsDrawnAtRandom(t *testing.T) {
	human, judge := bits01("1101010011"), bits01("1101110001")
	labelled := make([]Label, len(human))
	for i := range human {
		labelled[i] = Label{Human: human[i], Judge: judge[i]}
	}
	judged := make([]float64, 100)
	for i := range 70 {
		judged[i] = 1
	}
	powered := must[PPIResult](t)(PPIPlusPlus(labelled, judged, .95))
	wantNear(t, "lambda", powered.Lambda, .540351)
	wantNear(t, "PPI++", powered.Est, .654035)
	wantNear(t, "PPI++ standard error", powered.SE, .135134)
}

func TestDifferentialMisclassification(t *testing.T) {
	a := Calibration{Agent: "A", TP: 95, M1: 100, TN: 80, M0: 100}
	b := Calibration{Agent: "B", TP: 85, M1: 100, TN: 90, M0: 100}
	result := must[HomogeneityResult](t)(Homogeneity([]Calibration{a, b}))
	if !result.PerAgent {
		t.Errorf("a judge kinder to A is called homogeneous: %+v", result)
	}
	_, pooledA, _ := RoganGladen(.65, result.Pooled.TPR(), result.Pooled.TNR())
	_, pooledB, _ := RoganGladen(.55, result.Pooled.TPR(), result.Pooled.TNR())
	wantNear(t, "gap made up by pooling", pooledA-pooledB, .133333)
	_, ownA, _ := RoganGladen(.65, a.TPR(), a.TNR())
	_, ownB, _ := RoganGladen(.55, b.TPR(), b.TNR())
	wantNear(t, "A's own rate", ownA, .6)
	wantNear(t, "B's own rate", ownB, .6)
	same := must[HomogeneityResult](t)(Homogeneity([]Calibration{
		{Agent: "A", TP: 45, M1: 50, TN: 43, M0: 50},
		{Agent: "B", TP: 44, M1: 50, TN: 43, M0: 50},
	}))
	if same.PerAgent || same.Reason == "" {
		t.Errorf("equal judges: %+v, want pooled parameters with a caveat", same)
	}
	table := pairedTable{Both: 130, FirstOnly: 70, SecondOnly: 40, Neither: 60}
	gap := must[Interval](t)(perAgentCorrectedDifference(table, a, b, .95))
	if gap.Excludes(0) {
		t.Errorf("per-agent correction of an observed gap of 0.1 gives [%v, %v], want one that includes 0", gap.Lo, gap.Hi)
	}
}

func TestPairedCorrectedDifferenceVectors(t *testing.T) {
	calibration := Calibration{TP: 45, M1: 50, TN: 43, M0: 50}
	smoothed := must[Interval](t)(pairedCorrectedDifference(9, 2, 50, calibration, .95))
	wantNear(t, "smoothed difference", smoothed.Est, .184211)
	wantNear(t, "smoothed standard error", smoothed.SE, .092919)
	wantLimits(t, "smoothed", smoothed, .002092, .366329)
}
