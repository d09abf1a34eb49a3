package rangesum

import "testing"

func TestBehaviour(t *testing.T) {
	if got := RangeSum(1, 4); got != 10 {
		t.Errorf("got %v", got)
	}
	if got := RangeSum(5, 5); got != 5 {
		t.Errorf("got %v", got)
	}
	if got := RangeSum(3, 2); got != 0 {
		t.Errorf("got %v", got)
	}
}
