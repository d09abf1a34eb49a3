package limit

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestManyGoroutinesGetExactlyTheBurst(t *testing.T) {
	at := time.Unix(1000, 0)
	for range 200 {
		l := New(0.001, 64, func() time.Time { return at })
		var count atomic.Int64
		var all sync.WaitGroup
		for range 16 {
			all.Add(1)
			go func() {
				defer all.Done()
				for range 16 {
					if l.Allow() {
						count.Add(1)
					}
				}
			}()
		}
		all.Wait()
		if count.Load() != 64 {
			t.Fatalf("%d events were allowed, want 64", count.Load())
		}
	}
}
