package session

import (
	"strconv"
	"testing"
)

// TestRecentForgetsTheOlderHalf: what was set last is known, and what was set long ago is not.
func TestRecentForgetsTheOlderHalf(t *testing.T) {
	var r Recent[int]
	if r.Get("none") != 0 {
		t.Error("an empty one knows something")
	}
	for i := range 3 * recentKeys {
		r.Set(strconv.Itoa(i), i)
	}
	last := 3*recentKeys - 1
	if r.Get(strconv.Itoa(last)) != last || r.Get(strconv.Itoa(last-recentKeys)) != last-recentKeys {
		t.Error("what was set last is forgotten")
	}
	if r.Get("1") != 0 || len(r.young)+len(r.old) > 2*recentKeys {
		t.Errorf("what was set long ago is kept: %d keys", len(r.young)+len(r.old))
	}
}
