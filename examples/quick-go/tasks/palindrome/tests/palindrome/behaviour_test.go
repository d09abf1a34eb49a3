package palindrome

import "testing"

func TestBehaviour(t *testing.T) {
	if got := Palindrome("Anna"); got != true {
		t.Errorf("got %v", got)
	}
	if got := Palindrome("Ada"); got != true {
		t.Errorf("got %v", got)
	}
	if got := Palindrome("Bob "); got != false {
		t.Errorf("got %v", got)
	}
}
