package local

import (
	"testing"
	"time"
)

func TestATimeInWhichNothingRanIsNoticed(t *testing.T) {
	start := time.Unix(1000, 0)
	p := &pauses{last: start}
	for _, step := range []struct{ after, want time.Duration }{
		{time.Second, 0},
		{2 * time.Second, 0},
		{20 * time.Second, 18 * time.Second},
		{21 * time.Second, 18 * time.Second},
	} {
		if got := p.look(start.Add(step.after)); got != step.want {
			t.Errorf("after %s it was stopped for %s, want %s", step.after, got, step.want)
		}
	}
}
