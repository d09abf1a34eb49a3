package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
)

// Weight is how much a dimension counts, and how its score is made.
type Weight struct {
	// Weight is the dimension's part of the overall score.
	Weight float64 `json:"weight"`
	// Heuristic is the part of the heuristic in the dimension's score; the panel has the rest.
	Heuristic float64 `json:"heuristic"`
}

// Weights are those of all dimensions.
type Weights map[string]Weight

// DefaultWeights returns the default weights.
func DefaultWeights() Weights {
	return Weights{
		evidence.Correctness:  {Weight: 0.35, Heuristic: 0.70},
		evidence.Verification: {Weight: 0.20, Heuristic: 0.80},
		evidence.Completeness: {Weight: 0.20, Heuristic: 0.30},
		evidence.CodeQuality:  {Weight: 0.15, Heuristic: 0.40},
		evidence.MinimalDiff:  {Weight: 0.10, Heuristic: 0.60},
	}
}

// ParseWeights reads "correctness=0.35/0.7,minimalDiff=0": the weight of a dimension and, after a
// slash, the heuristic's part of it. Dimensions that are not named keep their default.
func ParseWeights(text string) (Weights, error) {
	weights := DefaultWeights()
	if strings.TrimSpace(text) == "" {
		return weights, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		weight, known := weights[name]
		if !known {
			return nil, fmt.Errorf("weights: there is no dimension %q, only %s", name,
				strings.Join(evidence.Dimensions(), ", "))
		}
		share, heuristic, both := strings.Cut(value, "/")
		var err error
		if weight.Weight, err = parseWeight(share); err == nil && both {
			weight.Heuristic, err = parseWeight(heuristic)
		}
		if err != nil || weight.Heuristic > 1 {
			return nil, fmt.Errorf("weights: %q: want DIMENSION=WEIGHT or DIMENSION=WEIGHT/HEURISTIC, for example "+
				"correctness=0.35/0.7", part)
		}
		weights[name] = weight
	}
	for _, weight := range weights {
		if weight.Weight > 0 {
			return weights, nil
		}
	}
	return nil, fmt.Errorf("weights: %q leaves no dimension with a weight above 0", text)
}

func parseWeight(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err == nil && !(value >= 0 && value <= 1e6) {
		err = strconv.ErrRange
	}
	return value, err
}

// String returns the weights as ParseWeights reads them.
func (w Weights) String() string {
	var parts []string
	for _, d := range evidence.Dimensions() {
		parts = append(parts, fmt.Sprintf("%s=%g/%g", d, w[d].Weight, w[d].Heuristic))
	}
	return strings.Join(parts, ",")
}

// Scores are scores from 0 to 1 by dimension. A missing one is unknown, which is not 0.
type Scores map[string]float64

// Blended is a run's score: heuristics and verdicts together. It is for ranking; tests use the
// binary outcomes.
type Blended struct {
	PerDimension Scores `json:"perDimension"`
	// Overall is nil where nothing is known.
	Overall *float64 `json:"overall"`
	// Coverage is the part of the weights that is known.
	Coverage float64 `json:"coverage"`
	// Capped says that the score of correctness was bounded because the check failed.
	Capped       bool `json:"capped,omitempty"`
	Disqualified bool `json:"disqualified,omitempty"`
}

// maxFailedCorrectness is the highest score of correctness for work that fails its check.
const maxFailedCorrectness = 0.3

// Blend mixes heuristic scores with those of a panel. verifyFailed caps correctness; a disqualified
// run scores 0.
func (w Weights) Blend(heuristic, judged Scores, verifyFailed, disqualified bool) Blended {
	b := Blended{PerDimension: Scores{}, Disqualified: disqualified}
	sum, total, all := 0.0, 0.0, 0.0
	for _, d := range slices.Sorted(maps.Keys(w)) {
		weight := w[d]
		all += weight.Weight
		score, known := mix(heuristic, judged, d, weight.Heuristic)
		if !known {
			continue
		}
		if d == evidence.Correctness && verifyFailed && score > maxFailedCorrectness {
			score, b.Capped = maxFailedCorrectness, true
		}
		b.PerDimension[d] = score
		sum += weight.Weight * score
		total += weight.Weight
	}
	if total > 0 {
		overall := sum / total
		b.Overall, b.Coverage = &overall, math.Min(1, total/all)
	}
	if disqualified {
		overall := 0.0
		b.Overall = &overall
	}
	return b
}

func mix(heuristic, judged Scores, dimension string, share float64) (float64, bool) {
	h, hasH := heuristic[dimension]
	j, hasJ := judged[dimension]
	switch {
	case hasH && hasJ:
		return share*h + (1-share)*j, true
	case hasH:
		return h, true
	}
	return j, hasJ
}
