package gcd

import "testing"

func TestBehaviour(t *testing.T) {
	if got := Gcd(12, 18); got != 6 {
		t.Errorf("got %v", got)
	}
	if got := Gcd(7, 5); got != 1 {
		t.Errorf("got %v", got)
	}
	if got := Gcd(9, 3); got != 3 {
		t.Errorf("got %v", got)
	}
}
