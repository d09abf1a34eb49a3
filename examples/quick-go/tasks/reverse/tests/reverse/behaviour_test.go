package reverse

import "testing"

func TestBehaviour(t *testing.T) {
	if got := Reverse("abc"); got != "cba" {
		t.Errorf("got %v", got)
	}
	if got := Reverse("ab"); got != "ba" {
		t.Errorf("got %v", got)
	}
	if got := Reverse(""); got != "" {
		t.Errorf("got %v", got)
	}
}
