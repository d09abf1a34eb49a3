package clamp

import "testing"

func TestNumbersBelowBecomeTheLowest(t *testing.T) {
	if got := Clamp(-7, 1, 5); got != 1 {
		t.Errorf("Clamp(-7, 1, 5) = %d, want 1", got)
	}
}
