package factorial

import "testing"

func TestBehaviour(t *testing.T) {
	if got := Factorial(5); got != 120 {
		t.Errorf("got %v", got)
	}
	if got := Factorial(0); got != 1 {
		t.Errorf("got %v", got)
	}
	if got := Factorial(1); got != 1 {
		t.Errorf("got %v", got)
	}
}
