package clamp

import "testing"

func TestNumbersInsideStay(t *testing.T) {
	for n := 1; n <= 5; n++ {
		if got := Clamp(n, 1, 5); got != n {
			t.Errorf("Clamp(%d, 1, 5) = %d", n, got)
		}
	}
}
