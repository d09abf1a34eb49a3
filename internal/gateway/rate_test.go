package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// take starts calls that are expected to start at once.
func take(t *testing.T, c *RateControl, count int) []func(int, time.Duration) {
	t.Helper()
	var releases []func(int, time.Duration)
	for range count {
		release, err := c.Acquire(t.Context(), "anthropic", "key", "opus")
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	return releases
}

func limitOf(t *testing.T, c *RateControl) int {
	t.Helper()
	all := c.Status()
	if len(all) != 1 {
		t.Fatalf("%d providers", len(all))
	}
	return all[0].Limit
}

func TestABurstHalvesTheCallsOnceAndGoodOnesAddOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewRateControl()
		burst := take(t, c, 12)
		for _, release := range burst {
			release(http.StatusTooManyRequests, 0)
			release(http.StatusTooManyRequests, 0) // a second release says nothing
		}
		if limit := limitOf(t, c); limit != 6 {
			t.Fatalf("after a burst among 12 calls: %d at a time, want 6", limit)
		}
		for _, release := range take(t, c, 6) {
			release(http.StatusOK, 0)
		}
		if limit := limitOf(t, c); limit != 7 {
			t.Fatalf("after 6 good calls: %d at a time, want 7", limit)
		}
		for _, want := range []int{3, 1, 1} {
			take(t, c, 1)[0](statusOverloaded, 0)
			if limit := limitOf(t, c); limit != want {
				t.Fatalf("%d at a time, want %d", limit, want)
			}
		}
		take(t, c, 1)[0](http.StatusInternalServerError, 0)
		take(t, c, 1)[0](0, 0)
		if limit := limitOf(t, c); limit != 1 {
			t.Fatalf("errors that say nothing about load changed the bound to %d", limit)
		}
	})
}

func TestCallsBeyondTheBoundWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewRateControl()
		for _, release := range take(t, c, 4) {
			release(http.StatusTooManyRequests, 0)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		var order []int
		running, most := 0, 0
		for i := range 10 {
			all.Go(func() {
				release, err := c.Acquire(t.Context(), "anthropic", "key", "opus")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				running++
				most = max(most, running)
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				release(http.StatusBadRequest, 0)
			})
			synctest.Wait()
		}
		other, err := c.Acquire(t.Context(), "anthropic", "another key", "opus")
		if err != nil {
			t.Fatal(err)
		}
		other(http.StatusOK, 0)
		if other, err = c.Acquire(t.Context(), "anthropic", "key", "haiku"); err != nil { // a lane of its own
			t.Fatal(err)
		}
		other(http.StatusOK, 0)
		all.Wait()
		if most != 2 {
			t.Errorf("%d at a time, want 2", most)
		}
		for i, who := range order {
			if i/2 != who/2 { // two are served at the same time
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}

func TestNoCallStartsWhileTheProviderAsksToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewRateControl()
		began := time.Now()
		take(t, c, 1)[0](http.StatusTooManyRequests, 7*time.Second)
		if pause := c.Status()[0].Pause; pause != 7*time.Second {
			t.Errorf("%s are shown", pause)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "anthropic", "key", "opus"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait does not end with its context: %v", err)
		}
		take(t, c, 1)[0](http.StatusOK, 0)
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited %s", waited)
		}
		take(t, c, 1)[0](http.StatusTooManyRequests, 24*time.Hour)
		began = time.Now()
		take(t, c, 1)[0](http.StatusOK, 0)
		if waited := time.Since(began); waited != longestPause {
			t.Errorf("waited %s for a provider that asked for a day", waited)
		}
	})
}
