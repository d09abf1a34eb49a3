package add

import "testing"

func TestBehaviour(t *testing.T) {
	if got := Add(2, 3); got != 5 {
		t.Errorf("got %v", got)
	}
	if got := Add(-4, 4); got != 0 {
		t.Errorf("got %v", got)
	}
	if got := Add(10, 7); got != 17 {
		t.Errorf("got %v", got)
	}
}
