package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The thresholds of Homogeneity: the adjusted p-value below which, and the gap above which, agents
// get their own parameters.
const (
	homogeneityAlpha = 0.10
	homogeneityGap   = 0.10
)

// HomogeneityTest is one comparison of a judge's error rate on two agents.
type HomogeneityTest struct {
	A    string  `json:"a"`
	B    string  `json:"b"`
	Rate string  `json:"rate"` // "tpr" or "tnr"
	Gap  float64 `json:"gap"`
	P    float64 `json:"p"`
	PAdj float64 `json:"pAdj"`
}

// HomogeneityResult says whether one calibration serves all agents.
type HomogeneityResult struct {
	Tests []HomogeneityTest `json:"tests"`
	// PerAgent is true when every agent must be corrected with its own TPR and TNR.
	PerAgent bool `json:"perAgent"`
	// Reason says why; with pooled parameters it is the caveat to print.
	Reason string      `json:"reason"`
	Pooled Calibration `json:"pooled"`
}

// Homogeneity tests whether a judge errs equally on all agents.
//
// Formula: [FisherExact] on TP/FN and on TN/FP for every pair of agents, [Holm] over all of them;
// per-agent parameters when an adjusted p < 0.10 or a gap in TPR or TNR > 0.10.
//
// Use it before correcting rates of several agents: a judge that is kinder to one of them fakes a
// difference.
//
// Do not take "no difference found" for equality: with few labels per agent the test sees little,
// and the caveat says so.
func Homogeneity(agents []Calibration) (HomogeneityResult, error) {
	if len(agents) < 2 {
		return HomogeneityResult{}, fmt.Errorf("calibrations must be of at least 2 agents, not %d", len(agents))
	}
	var result HomogeneityResult
	var ps []float64
	for i, agent := range agents {
		if err := agent.check(); err != nil {
			return HomogeneityResult{}, fmt.Errorf("agent %q: %w", agent.Agent, err)
		}
		result.Pooled.TP += agent.TP
		result.Pooled.M1 += agent.M1
		result.Pooled.TN += agent.TN
		result.Pooled.M0 += agent.M0
		for _, other := range agents[:i] {
			hits, err := FisherExact(other.TP, other.M1, agent.TP, agent.M1)
			if err != nil {
				return HomogeneityResult{}, err
			}
			rejections, err := FisherExact(other.TN, other.M0, agent.TN, agent.M0)
			if err != nil {
				return HomogeneityResult{}, err
			}
			result.Tests = append(result.Tests,
				HomogeneityTest{
					A:    other.Agent,
					B:    agent.Agent,
					Rate: "tpr",
					Gap:  other.TPR() - agent.TPR(),
					P:    hits,
				},
				HomogeneityTest{
					A:    other.Agent,
					B:    agent.Agent,
					Rate: "tnr",
					Gap:  other.TNR() - agent.TNR(),
					P:    rejections,
				})
			ps = append(ps, hits, rejections)
		}
	}
	adjusted, err := Holm(ps)
	if err != nil {
		return HomogeneityResult{}, err
	}
	for i := range result.Tests {
		result.Tests[i].PAdj = adjusted[i]
	}
	result.explain()
	return result, nil
}

// LabelledHomogeneity is [Homogeneity] of the agents that have human labels of both kinds.
//
// Formula: that of [Homogeneity]; nil where fewer than two agents have both kinds.
//
// Use it where some agents may have no labels.
//
// Do not take nil for equality: nothing was compared.
func LabelledHomogeneity(agents []Calibration) (*HomogeneityResult, error) {
	both := slices.DeleteFunc(slices.Clone(agents), func(c Calibration) bool { return c.M1 == 0 || c.M0 == 0 })
	if len(both) < 2 {
		return nil, nil //nolint:nilnil // there is nothing to compare
	}
	result, err := Homogeneity(both)
	return &result, err
}

func (r *HomogeneityResult) explain() {
	var reasons []string
	for _, test := range r.Tests {
		if test.PAdj < homogeneityAlpha || math.Abs(test.Gap) > homogeneityGap+1e-12 {
			reasons = append(reasons, fmt.Sprintf("%s differs by %.2f between %s and %s (%s %.3g)",
				strings.ToUpper(test.Rate), math.Abs(test.Gap), test.A, test.B, labelP(test.P, test.PAdj), test.PAdj))
		}
	}
	r.PerAgent = len(reasons) > 0
	if r.PerAgent {
		r.Reason = strings.Join(reasons, "; ")
		return
	}
	r.Reason = "no difference between agents was found, which is weak evidence with few labels: one calibration is " +
		"used for all"
}

// pairedCorrectedDifference returns the difference of two arms' true pass rates under a judge that
// errs equally on both: b tasks judged passed for the first arm only, c for the second only, n
// tasks in all.
//
// Formula: Δθ = (b−c)/(n·J); Var = [((b+c) − (b−c)²/n)/n² + Δθ²(TPR(1−TPR)/m1 + TNR(1−TNR)/m0)]/J²;
// limits by z; all of it from smoothed counts: b and c + 1, n + 2, (TP+1)/(m1+2), (TN+1)/(m0+2).
// Nothing is cut to [−1, 1].
//
// Use it with few tasks and labels: coverage is at least 94% from 30 tasks and 20 labels of each
// kind on.
//
// Do not use it where [Homogeneity] asks for parameters per agent: correct each arm by itself then.
func pairedCorrectedDifference(b, c, n int, calibration Calibration, level float64) (Interval, error) {
	if err := checkDiscordant(b, c, n, level); err != nil {
		return Interval{}, err
	}
	if err := calibration.usable(); err != nil {
		return Interval{}, err
	}
	wins, losses, tasks := float64(b)+1, float64(c)+1, float64(n)+2
	const method = "paired-corrected-smoothed"
	tpr, tnr := calibration.smoothed()
	youden := tpr.rate + tnr.rate - 1
	if youden <= 1e-9 {
		return uninformative(level, method), nil
	}
	gap := wins - losses
	delta := gap / (tasks * youden)
	paired := (wins + losses - gap*gap/tasks) / (tasks * tasks)
	variance := (paired + delta*delta*(tpr.variance()+tnr.variance())) / (youden * youden)
	return symmetric(delta, math.Sqrt(variance), normalQuantile(level), level, method), nil
}

// uninformative returns the difference under a judge that smoothing leaves no better than a coin.
func uninformative(level float64, method string) Interval {
	return Interval{
		Lo:       -1,
		Hi:       1,
		Level:    level,
		Method:   method,
		Warnings: []string{noBetterThanACoin},
	}
}

// pairedTable counts tasks by the verdicts on both arms.
type pairedTable struct {
	Both, FirstOnly, SecondOnly, Neither int
}

// perAgentCorrectedDifference returns the difference of two arms' true pass rates when the judge
// has different error rates on each of them.
//
// Formula: Δθ = θ_A − θ_B with [RoganGladen] per arm; Var = p_A(1−p_A)/(nJ_A²) + p_B(1−p_B)/(nJ_B²)
// − 2(p_AB − p_A·p_B)/(nJ_A·J_B) + (1−θ)²·TNR(1−TNR)/(m0·J²) + θ²·TPR(1−TPR)/(m1·J²) of both arms;
// counts smoothed as in [pairedCorrectedDifference] (half a task per cell of the table); limits by
// z.
//
// Use it where [Homogeneity] asks for parameters per agent. Coverage is at least 94% from 30 tasks
// and 20 labels of each kind and arm on.
//
// Do not use it with a common calibration: the shared error would be counted twice, and
// [pairedCorrectedDifference] is sharper.
func perAgentCorrectedDifference(table pairedTable, first, second Calibration, level float64) (Interval, error) {
	n := table.Both + table.FirstOnly + table.SecondOnly + table.Neither
	if table.Both < 0 || table.Neither < 0 {
		return Interval{}, fmt.Errorf("concordant counts must be at least 0, not %d and %d", table.Both,
			table.Neither)
	}
	if err := checkDiscordant(table.FirstOnly, table.SecondOnly, n, level); err != nil {
		return Interval{}, err
	}
	for _, calibration := range []Calibration{first, second} {
		if err := calibration.usable(); err != nil {
			return Interval{}, fmt.Errorf("agent %q: %w", calibration.Agent, err)
		}
	}
	tasks := float64(n) + 2
	both := (float64(table.Both) + 0.5) / tasks
	pa, pb := both+(float64(table.FirstOnly)+0.5)/tasks, both+(float64(table.SecondOnly)+0.5)/tasks
	a, b := smoothCalibration(pa, first), smoothCalibration(pb, second)
	if a.youden <= 1e-9 || b.youden <= 1e-9 {
		return uninformative(level, "per-agent-corrected"), nil
	}
	variance := pa*(1-pa)/(tasks*a.youden*a.youden) + pb*(1-pb)/(tasks*b.youden*b.youden) -
		2*(both-pa*pb)/(tasks*a.youden*b.youden) + a.variance + b.variance
	interval := symmetric(clamp(a.theta-b.theta, -1, 1), math.Sqrt(math.Max(0, variance)), normalQuantile(level), level,
		"per-agent-corrected")
	return interval.cutTo(-1), nil
}

// smoothedJudge is a corrected rate with the part of its variance that the calibration causes.
type smoothedJudge struct {
	theta, youden, variance float64
}

func smoothCalibration(p float64, calibration Calibration) smoothedJudge {
	tpr, tnr := calibration.smoothed()
	youden := tpr.rate + tnr.rate - 1
	theta := (p + tnr.rate - 1) / youden
	variance := ((1-theta)*(1-theta)*tnr.rate*(1-tnr.rate)/tnr.n + theta*theta*tpr.rate*(1-tpr.rate)/tpr.n) /
		(youden * youden)
	return smoothedJudge{theta: theta, youden: youden, variance: variance}
}
