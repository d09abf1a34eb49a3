package countwords

import "testing"

func TestBehaviour(t *testing.T) {
	if got := CountWords("a  b"); got != 2 {
		t.Errorf("got %v", got)
	}
	if got := CountWords(""); got != 0 {
		t.Errorf("got %v", got)
	}
	if got := CountWords(" one\ntwo three "); got != 3 {
		t.Errorf("got %v", got)
	}
}
