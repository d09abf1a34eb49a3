package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Holm adjusts p-values so that the chance of any false claim in the family stays below α.
//
// Formula: sorted ascending, p̃_(i) = max_{j≤i} min(1, (m−j+1)·p_(j)); the result is in the order
// of the input.
//
// Use it for headline claims; the family is every (pair of arms × dimension) tested in one report.
// It needs no independence.
//
// Do not use it for long exploratory tables, where it finds little: [BenjaminiHochberg].
func Holm(p []float64) ([]float64, error) {
	order, err := ascending(p)
	if err != nil {
		return nil, err
	}
	adjusted := make([]float64, len(p))
	highest := 0.0
	for rank, index := range order {
		highest = math.Max(highest, math.Min(1, float64(len(p)-rank)*p[index]))
		adjusted[index] = highest
	}
	return adjusted, nil
}

// BenjaminiHochberg adjusts p-values so that the expected share of false claims among the claims
// stays below α.
//
// Formula: sorted ascending, p̃_(i) = min_{j≥i} min(1, m·p_(j)/j); the result is in the order of
// the input.
//
// Use it for exploratory tables whose findings are tested again later.
//
// Do not use it for headline claims ([Holm]), nor for strongly negatively dependent tests.
func BenjaminiHochberg(p []float64) ([]float64, error) {
	order, err := ascending(p)
	if err != nil {
		return nil, err
	}
	adjusted := make([]float64, len(p))
	lowest := 1.0
	for rank, index := range slices.Backward(order) {
		lowest = math.Min(lowest, float64(len(p))*p[index]/float64(rank+1))
		adjusted[index] = lowest
	}
	return adjusted, nil
}

func ascending(p []float64) ([]int, error) {
	order := make([]int, len(p))
	for i, value := range p {
		if err := checkUnit(fmt.Sprintf("p-value %d", i+1), value); err != nil {
			return nil, err
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order, nil
}
