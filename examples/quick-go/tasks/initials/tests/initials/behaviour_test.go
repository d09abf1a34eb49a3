package initials

import "testing"

func TestBehaviour(t *testing.T) {
	if got := Initials("ada lovelace"); got != "AL" {
		t.Errorf("got %v", got)
	}
	if got := Initials("Grace  Brewster Hopper"); got != "GBH" {
		t.Errorf("got %v", got)
	}
	if got := Initials("Plato"); got != "P" {
		t.Errorf("got %v", got)
	}
}
