package clamp

import "testing"

func TestNumbersAboveBecomeTheHighest(t *testing.T) {
	if got := Clamp(9, 1, 5); got != 5 {
		t.Errorf("Clamp(9, 1, 5) = %d, want 5", got)
	}
}
