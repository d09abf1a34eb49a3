package stats_test

import (
	"fmt"

	"github.com/fit-eval/fit/stats"
)

// Twelve tasks, three runs each. The candidate passes one run more on nine of them.
func ExampleCompare() {
	var pairs []stats.Pair
	for task := range 12 {
		pair := stats.Pair{
			Task:      fmt.Sprintf("task-%d", task),
			Baseline:  []float64{1, 0, 0},
			Candidate: []float64{1, 1, 0},
		}
		if task%4 == 3 {
			pair.Candidate = pair.Baseline
		}
		pairs = append(pairs, pair)
	}
	comparison, err := stats.Compare(pairs, stats.CompareConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	decision, err := stats.Decide(comparison, stats.DecideConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(decision.Claim, comparison.Method)
	fmt.Printf("%+.3f [%+.3f, %+.3f], p = %.4f\n", decision.Effect, *decision.Lo, *decision.Hi, decision.P)
	// Output:
	// improved signflip
	// +0.250 [+0.154, +0.346], p = 0.0039
}

// Several comparisons in one report share the risk of a false claim.
func ExampleDecideFamily() {
	var comparisons []stats.Comparison
	for _, wins := range []int{9, 7} {
		var pairs []stats.Pair
		for task := range 20 {
			pair := stats.Pair{Candidate: []float64{0}, Baseline: []float64{0}}
			if task < wins {
				pair.Candidate[0] = 1
			}
			pairs = append(pairs, pair)
		}
		comparison, err := stats.Compare(pairs, stats.CompareConfig{})
		if err != nil {
			fmt.Println(err)
			return
		}
		comparisons = append(comparisons, comparison)
	}
	decisions, err := stats.DecideFamily(comparisons, make([]stats.DecideConfig, 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, decision := range decisions {
		fmt.Printf("%s: p = %.4f, adjusted %.4f\n", decision.Claim, decision.P, decision.PAdj)
	}
	// Output:
	// improved: p = 0.0039, adjusted 0.0078
	// improved: p = 0.0156, adjusted 0.0156
}

func ExamplePassRate() {
	// Each element holds the runs of one task.
	rate, err := stats.PassRate([][]float64{{1, 1, 0}, {1, 1, 1}, {0, 0, 0}, {1, 0, 1}}, 0.95)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f [%.2f, %.2f] by %s\n", rate.Est, rate.Lo, rate.Hi, rate.Method)
	// Output: 0.58 [0.20, 0.89] by wilson
}

func ExamplePassAtK() {
	// Of ten runs three passed: the chance that at least one of five passes.
	at5, err := stats.PassAtK(10, 3, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.6f\n", at5)
	// Output: 0.916667
}
