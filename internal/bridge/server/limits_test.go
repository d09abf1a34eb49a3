package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestWhoPostsTooMuchIsToldWhenToComeBack: what was too much is welcome after the time that the
// answer names, and others are not concerned.
func TestWhoPostsTooMuchIsToldWhenToComeBack(t *testing.T) {
	var l limits
	now := time.UnixMilli(0)
	post := func(thread, person string) (int, string) {
		recorder := httptest.NewRecorder()
		answer(func(*http.Request) (any, error) { return nil, l.take(thread, person, now) })(recorder, nil)
		return recorder.Code, recorder.Header().Get("Retry-After")
	}
	for i := range postBurst {
		if status, _ := post("a", "Eve"); status != http.StatusOK {
			t.Fatalf("post %d: %d", i, status)
		}
	}
	if status, after := post("a", "Eve"); status != http.StatusTooManyRequests || after != "1" {
		t.Errorf("one more: %d, Retry-After %q", status, after)
	}
	for _, other := range [][2]string{{"a", "Bob"}, {"b", "Eve"}} {
		if status, _ := post(other[0], other[1]); status != http.StatusOK {
			t.Errorf("%s in %s: %d", other[1], other[0], status)
		}
	}
	now = now.Add(time.Second)
	if status, _ := post("a", "Eve"); status != http.StatusOK {
		t.Errorf("a second later: %d", status)
	}
}
