package judge

import (
	"math"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
)

func TestBlend(t *testing.T) {
	h := Scores{"correctness": 1, "verification": 1, "completeness": .5, "codeQuality": .8, "minimalDiff": .75}
	j := Scores{"correctness": 1, "verification": 1, "completeness": 0, "codeQuality": 1, "minimalDiff": 2. / 3}
	without := func(s Scores, dimensions ...string) Scores {
		rest := Scores{}
		for d, score := range s {
			rest[d] = score
		}
		for _, d := range dimensions {
			delete(rest, d)
		}
		return rest
	}
	for _, test := range []struct {
		name                 string
		h, j                 Scores
		failed, disqualified bool
		want                 Scores
		overall, coverage    float64
		capped, nothing      bool
	}{
		{
			name: "vector 1", h: h, j: j, overall: 0.789667, coverage: 1,
			want: Scores{
				"correctness": 1, "verification": 1, "completeness": .15, "codeQuality": .92, "minimalDiff": .716667,
			},
		},
		{
			name: "vector 2", h: without(h, "correctness", "codeQuality"), j: without(j, "completeness", "codeQuality"),
			overall: 0.849020, coverage: .85,
			want: Scores{"correctness": 1, "verification": 1, "completeness": .5, "minimalDiff": .716667},
		},
		{
			name: "the check failed", h: Scores{}, j: Scores{"correctness": 1}, failed: true, overall: .3,
			coverage: .35, want: Scores{"correctness": .3}, capped: true,
		},
		{
			name: "the check failed, and so did the panel", h: Scores{"correctness": 0}, j: Scores{"correctness": 0},
			failed: true, overall: 0, coverage: .35, want: Scores{"correctness": 0},
		},
		{
			name: "disqualified", h: Scores{"correctness": 1}, disqualified: true, coverage: .35,
			want: Scores{"correctness": 1},
		},
		{name: "nothing is known", nothing: true, want: Scores{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := DefaultWeights().Blend(test.h, test.j, test.failed, test.disqualified)
			if (b.Overall == nil) != test.nothing || b.Overall != nil && math.Abs(*b.Overall-test.overall) > 1e-6 {
				t.Errorf("overall %v, want %v", b.Overall, test.overall)
			}
			if math.Abs(b.Coverage-test.coverage) > 1e-9 || b.Capped != test.capped ||
				b.Disqualified != test.disqualified {
				t.Errorf("%+v", b)
			}
			if len(b.PerDimension) != len(test.want) {
				t.Errorf("dimensions %v, want %v", b.PerDimension, test.want)
			}
			for d, want := range test.want {
				if math.Abs(b.PerDimension[d]-want) > 1e-6 {
					t.Errorf("%s is %v, want %v", d, b.PerDimension[d], want)
				}
			}
		})
	}
}

func TestWeights(t *testing.T) {
	weights, err := ParseWeights("correctness=0.5/1, minimalDiff=0")
	if err != nil {
		t.Fatal(err)
	}
	if weights[evidence.Correctness] != (Weight{0.5, 1}) || weights[evidence.MinimalDiff] != (Weight{0, 0.6}) ||
		weights[evidence.CodeQuality] != DefaultWeights()[evidence.CodeQuality] {
		t.Errorf("weights %v", weights)
	}
	again, err := ParseWeights(weights.String())
	if err != nil || again.String() != weights.String() {
		t.Errorf("%v, %v", again, err)
	}
	for _, wrong := range []string{
		"style=1", "correctness", "correctness=x", "correctness=-1", "correctness=1/2", "correctness=NaN",
		"correctness=0,verification=0,completeness=0,codeQuality=0,minimalDiff=0",
	} {
		if _, err := ParseWeights(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
