package stats

import (
	"fmt"
	"math"
)

// Kappa is a coefficient of agreement with the shares it is made of.
type Kappa struct {
	// Value is 1 for perfect agreement and 0 for agreement by chance.
	Value float64 `json:"value"`
	SE    float64 `json:"se,omitempty"`
	// Observed and Expected are the agreement seen and the one expected by chance.
	Observed float64 `json:"observed"`
	Expected float64 `json:"expected"`
	Items    int     `json:"items"`
}

// kappaOf refuses the one case that has no meaning: agreement that is certain by chance alone.
func kappaOf(observed, expected float64, items int) (Kappa, error) {
	if 1-expected < 1e-12 {
		return Kappa{}, fmt.Errorf("every rating is the same: agreement beyond chance is undefined")
	}
	return Kappa{
		Value:    (observed - expected) / (1 - expected),
		Observed: observed,
		Expected: expected,
		Items:    items,
	}, nil
}

// CohenKappa returns the agreement of two raters beyond chance, from the square table of their
// ratings: table[i][j] items were rated i by the first and j by the second.
//
// Formula: κ = (p_o − p_e)/(1 − p_e), p_e = Σ p_i·p_·i; SE ≈ √(p_o(1−p_o)/(N(1−p_e)²)).
//
// Use it for two humans on the same items.
//
// Do not report it alone: with few fails it is low although raters agree ([GwetAC1]); for a judge
// against a human report TPR and TNR as well.
func CohenKappa(table [][]int) (Kappa, error) {
	total, rows, columns, err := margins(table)
	if err != nil {
		return Kappa{}, err
	}
	observed, expected := 0.0, 0.0
	for i := range table {
		observed += float64(table[i][i]) / total
		expected += rows[i] / total * columns[i] / total
	}
	kappa, err := kappaOf(observed, expected, int(total))
	if err != nil {
		return Kappa{}, err
	}
	kappa.SE = math.Sqrt(observed * (1 - observed) / (total * (1 - expected) * (1 - expected)))
	return kappa, nil
}

// GwetAC1 returns the agreement of two raters beyond chance that stays steady when one category
// dominates.
//
// Formula: AC1 = (p_o − p_e)/(1 − p_e), p_e = Σ π_i(1−π_i)/(Q−1), π_i the mean share of category i
// over both raters, Q categories.
//
// Use it beside [CohenKappa] when passes or fails are rare.
//
// Do not use it with a single category in the table.
func GwetAC1(table [][]int) (Kappa, error) {
	total, rows, columns, err := margins(table)
	if err != nil {
		return Kappa{}, err
	}
	if len(table) < 2 {
		return Kappa{}, fmt.Errorf("one category: agreement beyond chance is undefined")
	}
	observed, expected := 0.0, 0.0
	for i := range table {
		observed += float64(table[i][i]) / total
		share := (rows[i] + columns[i]) / (2 * total)
		expected += share * (1 - share)
	}
	return kappaOf(observed, expected/float64(len(table)-1), int(total))
}

func margins(table [][]int) (total float64, rows, columns []float64, err error) {
	rows, columns = make([]float64, len(table)), make([]float64, len(table))
	for i, row := range table {
		if len(row) != len(table) {
			return 0, nil, nil, fmt.Errorf("the table must be square: row %d has %d cells, not %d", i+1, len(row),
				len(table))
		}
		for j, count := range row {
			if count < 0 {
				return 0, nil, nil, fmt.Errorf("row %d of the table has a negative count %d", i+1, count)
			}
			rows[i] += float64(count)
			columns[j] += float64(count)
			total += float64(count)
		}
	}
	if total == 0 {
		return 0, nil, nil, ErrNoData
	}
	return total, rows, columns, nil
}

// FleissKappa returns the agreement of several raters beyond chance; counts[i][j] raters put item i
// into category j, and every item has as many raters.
//
// Formula: P_i = (Σ_j n_ij² − r)/(r(r−1)), κ = (P̄ − P̄_e)/(1 − P̄_e), P̄_e = Σ_j p_j².
//
// Use it for a panel in which everybody rated everything.
//
// Do not use it with missing ratings ([KrippendorffAlpha]); like κ it is low when one category
// dominates.
func FleissKappa(counts [][]int) (Kappa, error) {
	if len(counts) == 0 {
		return Kappa{}, ErrNoData
	}
	raters := 0
	for _, count := range counts[0] {
		raters += count
	}
	if raters < 2 {
		return Kappa{}, fmt.Errorf("ratings of an item must be at least 2, not %d", raters)
	}
	shares := make([]float64, len(counts[0]))
	observed := 0.0
	for i, row := range counts {
		if len(row) != len(shares) {
			return Kappa{}, fmt.Errorf("item %d must have %d categories, as the first has, not %d", i+1, len(shares),
				len(row))
		}
		ratings, agreeing := 0, 0
		for j, count := range row {
			if count < 0 {
				return Kappa{}, fmt.Errorf("item %d has a negative count %d", i+1, count)
			}
			ratings += count
			agreeing += count * (count - 1)
			shares[j] += float64(count)
		}
		if ratings != raters {
			return Kappa{}, fmt.Errorf("item %d has %d ratings and item 1 has %d: Fleiss needs equally many", i+1,
				ratings, raters)
		}
		observed += float64(agreeing) / float64(raters*(raters-1))
	}
	expected, total := 0.0, float64(len(counts)*raters)
	for _, share := range shares {
		expected += share / total * share / total
	}
	return kappaOf(observed/float64(len(counts)), expected, len(counts))
}

// KrippendorffAlpha returns the agreement of any number of raters with missing ratings, for
// categories without order; counts[i][j] raters put item i into category j. Items with fewer than
// two ratings are left out.
//
// Formula: α = 1 − D_o/D_e over the coincidence matrix: D_o = Σ_i Σ_{j≠k} n_ij·n_ik/(m_i − 1)/n,
// D_e = Σ_{j≠k} n_j·n_k/(n(n−1)), n the pairable ratings.
//
// Use it when raters skipped items.
//
// Do not use it for scores or ordered grades, whose near misses it counts as full disagreement.
func KrippendorffAlpha(counts [][]int) (Kappa, error) {
	if len(counts) == 0 {
		return Kappa{}, ErrNoData
	}
	totals := make([]float64, len(counts[0]))
	disagreement, ratings, items := 0.0, 0.0, 0
	for i, row := range counts {
		if len(row) != len(totals) {
			return Kappa{}, fmt.Errorf("item %d must have %d categories, as the first has, not %d", i+1, len(totals),
				len(row))
		}
		sum, squares := 0.0, 0.0
		for _, count := range row {
			if count < 0 {
				return Kappa{}, fmt.Errorf("item %d has a negative count %d", i+1, count)
			}
			sum += float64(count)
			squares += float64(count) * float64(count)
		}
		if sum < 2 {
			continue
		}
		items++
		ratings += sum
		disagreement += (sum*sum - squares) / (sum - 1)
		for j, count := range row {
			totals[j] += float64(count)
		}
	}
	if items == 0 {
		return Kappa{}, fmt.Errorf("no item has two ratings: %w", ErrNoData)
	}
	squares := 0.0
	for _, total := range totals {
		squares += total * total
	}
	byChance := (ratings*ratings - squares) / (ratings * (ratings - 1))
	return kappaOf(1-disagreement/ratings, 1-byChance, items)
}
