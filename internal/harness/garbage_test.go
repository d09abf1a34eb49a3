package harness

import (
	"strings"
	"testing"
)

func TestWhatIsNotAnEventIsBoundedInEachTurn(t *testing.T) {
	var g garbage
	rubbish := []byte(`{"type":"stderr","text":"` + strings.Repeat("x", 1<<20) + `"}`)
	kept := 0
	for range 10 {
		if g.keep(rubbish) {
			kept++
		}
	}
	if kept != 3 || g.keep([]byte("not JSON "+string(rubbish))) {
		t.Errorf("%d lines of 1 MiB were kept", kept)
	}
	if !g.keep([]byte(`{"type":"assistant"}`)) {
		t.Error("an event was left out")
	}
	if text := g.endRound(); !strings.Contains(text, "more than 4 MiB") {
		t.Errorf("the trace says %q", text)
	}
	if !g.keep(rubbish) || g.endRound() != "" {
		t.Error("the next turn does not begin anew")
	}
}
