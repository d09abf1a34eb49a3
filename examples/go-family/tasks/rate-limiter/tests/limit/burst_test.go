package limit

import (
	"testing"
	"time"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func allowed(l *Limiter, tries int) int {
	count := 0
	for range tries {
		if l.Allow() {
			count++
		}
	}
	return count
}

func TestBurstIsTheMostAfterAPause(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	l := New(10, 5, c.now)
	if got := allowed(l, 20); got != 5 {
		t.Errorf("%d at the start, want 5", got)
	}
	c.at = c.at.Add(time.Hour)
	if got := allowed(l, 200); got != 5 {
		t.Errorf("%d after an hour, want 5", got)
	}
}

func TestTokensComeBackAtTheRate(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	l := New(10, 5, c.now)
	allowed(l, 5)
	c.at = c.at.Add(300 * time.Millisecond)
	if got := allowed(l, 20); got != 3 {
		t.Errorf("%d after 300 ms, want 3", got)
	}
}
