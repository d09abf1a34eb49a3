package stats

import (
	"fmt"
	"math"
)

// EffectiveVotes returns the number of independent judges a panel of n correlated ones is worth.
//
// Formula: n_eff = n/(1 + (n−1)·ρ̄), ρ̄ the mean pairwise correlation of their errors
// ([ErrorCorrelation]).
//
// Use it to say what a panel adds over one judge.
//
// Do not use it with negative correlations beyond −1/(n−1), which no panel can have.
func EffectiveVotes(judges int, correlation float64) (float64, error) {
	if judges < 1 {
		return 0, fmt.Errorf("judges must be at least 1, not %d", judges)
	}
	if !(correlation >= -1 && correlation <= 1) {
		return 0, fmt.Errorf("mean error correlation must be a number between -1 and 1, not %v", correlation)
	}
	inflation := 1 + float64(judges-1)*correlation
	if inflation <= 0 {
		return 0, fmt.Errorf("a mean error correlation of %v is impossible among %d judges", correlation, judges)
	}
	return float64(judges) / inflation, nil
}

// ErrorCorrelation returns the mean pairwise correlation of judges' errors; wrong[j][i] is true
// when judge j erred on item i.
//
// Formula: mean over pairs of φ = (n₁₁·n₀₀ − n₁₀·n₀₁)/√(n₁·n₀·n·₁·n·₀). Pairs in which a judge
// never or always errs have no φ and are left out.
//
// Use it on items with human labels.
//
// Do not use it for agreement as such: judges that are right together agree without sharing errors.
func ErrorCorrelation(wrong [][]bool) (float64, error) {
	if len(wrong) < 2 || len(wrong[0]) == 0 {
		return 0, fmt.Errorf("the correlation of errors needs at least 2 judges and 1 item")
	}
	total, pairs := 0.0, 0
	for j, judge := range wrong {
		if len(judge) != len(wrong[0]) {
			return 0, fmt.Errorf("judge %d must have %d items, as the first, not %d", j+1, len(wrong[0]), len(judge))
		}
		for _, other := range wrong[:j] {
			if phi, ok := phiCoefficient(judge, other); ok {
				total += phi
				pairs++
			}
		}
	}
	if pairs == 0 {
		return 0, fmt.Errorf("no pair of judges erred on some items but not on all: their correlation is undefined")
	}
	return total / float64(pairs), nil
}

func phiCoefficient(a, b []bool) (float64, bool) {
	var both, onlyA, onlyB, neither float64
	for i := range a {
		switch {
		case a[i] && b[i]:
			both++
		case a[i]:
			onlyA++
		case b[i]:
			onlyB++
		default:
			neither++
		}
	}
	product := (both + onlyA) * (onlyB + neither) * (both + onlyB) * (onlyA + neither)
	if product == 0 {
		return 0, false
	}
	return (both*neither - onlyA*onlyB) / math.Sqrt(product), true
}

// Winner is the outcome of a pairwise comparison, mapped to the arms.
type Winner string

// The outcomes of a pairwise comparison.
const (
	WinnerA Winner = "A"
	WinnerB Winner = "B"
	WinnerT Winner = "tie"
)

// SwapView is one pair judged in both orders: the winner when A was shown first, and when B was.
type SwapView struct {
	WhenAFirst, WhenBFirst Winner
}

// Reconcile turns two views into one verdict: equal answers win, everything else is a tie; bias is
// true when both were decisive and different.
func (v SwapView) Reconcile() (winner Winner, bias bool) {
	if v.WhenAFirst == v.WhenBFirst {
		return v.WhenAFirst, false
	}
	return WinnerT, v.WhenAFirst != WinnerT && v.WhenBFirst != WinnerT
}

// SwapSummary says how much the order of presentation mattered.
type SwapSummary struct {
	Pairs int `json:"pairs"`
	// Decisive pairs had a winner in both orders; Flips of them had different ones. Primacy flips
	// favoured the first shown, recency the second.
	Decisive  int     `json:"decisive"`
	Flips     int     `json:"flips"`
	Primacy   int     `json:"primacy"`
	Recency   int     `json:"recency"`
	FlipRate  float64 `json:"flipRate"`
	FirstPick float64 `json:"firstPick"`
	Coverage  float64 `json:"coverage"`
	A         int     `json:"a"`
	B         int     `json:"b"`
	Ties      int     `json:"ties"`
}

// SummariseSwaps measures the position bias of a judge and counts the reconciled verdicts.
//
// Formula: flip rate = flips/pairs decisive in both orders; first pick = first-shown picks/decisive
// views; coverage = decisive pairs/pairs. A rate without a denominator is 0.
//
// Use it per judge and dimension; beyond a flip rate of 0.30 at a coverage of 0.5 and more the
// judge should not compare pairs.
//
// Do not average the two orders instead: the bias would hide in the mean.
func SummariseSwaps(views []SwapView) (SwapSummary, error) {
	summary := SwapSummary{Pairs: len(views)}
	firstPicks, decisiveViews := 0, 0
	for i, view := range views {
		for _, winner := range []Winner{view.WhenAFirst, view.WhenBFirst} {
			if winner != WinnerA && winner != WinnerB && winner != WinnerT {
				return SwapSummary{}, fmt.Errorf("pair %d: winner must be %s, %s or %s, not %q", i+1, WinnerA, WinnerB,
					WinnerT, winner)
			}
			if winner != WinnerT {
				decisiveViews++
			}
		}
		if view.WhenAFirst == WinnerA {
			firstPicks++
		}
		if view.WhenBFirst == WinnerB {
			firstPicks++
		}
		summary.count(view)
	}
	summary.FlipRate = share(summary.Flips, summary.Decisive)
	summary.FirstPick = share(firstPicks, decisiveViews)
	summary.Coverage = share(summary.Decisive, summary.Pairs)
	return summary, nil
}

func (s *SwapSummary) count(view SwapView) {
	winner, bias := view.Reconcile()
	switch winner {
	case WinnerA:
		s.A++
	case WinnerB:
		s.B++
	default:
		s.Ties++
	}
	if view.WhenAFirst != WinnerT && view.WhenBFirst != WinnerT {
		s.Decisive++
	}
	if bias {
		s.Flips++
		if view.WhenAFirst == WinnerA {
			s.Primacy++
		} else {
			s.Recency++
		}
	}
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
