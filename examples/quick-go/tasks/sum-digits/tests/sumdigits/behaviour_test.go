package sumdigits

import "testing"

func TestBehaviour(t *testing.T) {
	if got := SumDigits(123); got != 6 {
		t.Errorf("got %v", got)
	}
	if got := SumDigits(0); got != 0 {
		t.Errorf("got %v", got)
	}
	if got := SumDigits(9009); got != 18 {
		t.Errorf("got %v", got)
	}
}
