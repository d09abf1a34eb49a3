package stats

import (
	"math"
	"testing"
)

// TestNewcombeUnpaired compares with table II of Newcombe (1998), method 10, and computes the
// coverage exactly for the few runs that tasks have.
func TestNewcombeUnpaired(t *testing.T) {
	for _, c := range []struct {
		k1, n1, k2, n2 int
		lo, hi         float64
	}{
		{56, 70, 48, 80, 0.0524, 0.3339},
		{9, 10, 3, 10, 0.1705, 0.8090},
		{10, 10, 0, 10, 0.6075, 1.0000},
	} {
		got := NewcombeUnpaired(wilson(float64(c.k1), float64(c.n1), 0.95), wilson(float64(c.k2), float64(c.n2), 0.95))
		if math.Abs(got.Lo-c.lo) > 5e-5 || math.Abs(got.Hi-c.hi) > 5e-5 {
			t.Errorf("%d/%d and %d/%d: [%.4f, %.4f], want [%.4f, %.4f]", c.k1, c.n1, c.k2, c.n2, got.Lo, got.Hi, c.lo, c.hi)
		}
	}
	for n := 3; n <= 10; n++ {
		least, sum, count := 1.0, 0.0, 0.0
		for p := 0.05; p < 1; p += 0.05 {
			for q := 0.05; q < 1; q += 0.05 {
				covered := unpairedCoverage(n, p, q)
				least, sum, count = min(least, covered), sum+covered, count+1
			}
		}
		if least < 0.87 || sum/count < 0.94 {
			t.Errorf("%d runs: coverage at least %.3f, on average %.3f", n, least, sum/count)
		}
	}
}

func unpairedCoverage(n int, p, q float64) float64 {
	chance := func(k int, p float64) float64 {
		ways, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		return math.Exp(ways-a-b) * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k))
	}
	covered := 0.0
	for i := range n + 1 {
		for j := range n + 1 {
			interval := NewcombeUnpaired(wilson(float64(i), float64(n), 0.95), wilson(float64(j), float64(n), 0.95))
			if interval.Contains(p - q) {
				covered += chance(i, p) * chance(j, q)
			}
		}
	}
	return covered
}
