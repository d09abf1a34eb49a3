package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func newSource(seed uint64) *rand.PCG { return rand.NewPCG(seed, 0) }

// must unwraps a result that the test relies on.
func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return value
	}
}

// wantNear compares to the six decimals in which published vectors are printed.
func wantNear(t testing.TB, what string, got, want float64) {
	t.Helper()
	wantWithin(t, what, got, want, 1e-6)
}

func wantWithin(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.9f, want %.9f (± %g)", what, got, want, tolerance)
	}
}

func wantLimits(t testing.TB, what string, got Interval, lo, hi float64) {
	t.Helper()
	wantNear(t, what+" lower limit", got.Lo, lo)
	wantNear(t, what+" upper limit", got.Hi, hi)
}

func wantAllNear(t testing.TB, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		wantNear(t, what, got[i], want[i])
	}
}

// measured is Compare without the detectable effect, for simulations.
func measured(pairs []Pair, config CompareConfig) (Comparison, error) {
	comparison, _, err := measure(pairs, config, false)
	return comparison, err
}

func measuredRatio(pairs []Pair, config CompareConfig) (Comparison, error) {
	comparison, _, err := measure(pairs, config, true)
	return comparison, err
}

func measuredSequential(pairs []Pair) (Comparison, error) {
	comparison, _, err := measureSequential(pairs, CompareConfig{})
	return comparison, err
}

// bits01 turns "110" into the outcomes 1, 1, 0.
func bits01(text string) []float64 {
	outcomes := make([]float64, len(text))
	for i, digit := range text {
		outcomes[i] = float64(digit - '0')
	}
	return outcomes
}
