package display_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/display"
)

func TestDollars(t *testing.T) {
	for usd, want := range map[float64]string{
		0: "$0.00", 12.345: "$12.35", 0.01: "$0.01", 0.004: "$0.004", 0.003149: "$0.0031", 0.0000042: "$0.0000042",
	} {
		if got := display.Dollars(usd); got != want {
			t.Errorf("%v: %s, want %s", usd, got, want)
		}
	}
}
