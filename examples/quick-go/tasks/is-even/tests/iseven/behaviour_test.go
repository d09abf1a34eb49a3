package iseven

import "testing"

func TestBehaviour(t *testing.T) {
	if got := IsEven(4); got != true {
		t.Errorf("got %v", got)
	}
	if got := IsEven(7); got != false {
		t.Errorf("got %v", got)
	}
	if got := IsEven(-3); got != false {
		t.Errorf("got %v", got)
	}
}
