package largest

import "testing"

func TestBehaviour(t *testing.T) {
	if got := Largest([]int{3, 9, 4}); got != 9 {
		t.Errorf("got %v", got)
	}
	if got := Largest([]int{-5, -2}); got != -2 {
		t.Errorf("got %v", got)
	}
	if got := Largest([]int{7}); got != 7 {
		t.Errorf("got %v", got)
	}
}
