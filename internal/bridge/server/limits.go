package server

import (
	"math"
	"net/http"
	"sync"
	"time"
)

// What one person may post in one thread: so many at a time, and so many a second after that.
const (
	postBurst = 60
	postRate  = 10.0
)

// limits counts what people post.
type limits struct {
	mu   sync.Mutex
	kept map[[2]string]*allowance
}

type allowance struct {
	left float64
	at   time.Time
}

// take counts one post, or says when the next one is welcome.
func (l *limits) take(thread, person string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[[2]string]*allowance{}
	}
	if len(l.kept) > 10_000 { // those that are full again say nothing
		for key, a := range l.kept {
			if a.at.Before(now.Add(-postBurst / postRate * time.Second)) {
				delete(l.kept, key)
			}
		}
	}
	key := [2]string{thread, person}
	a := l.kept[key]
	if a == nil {
		a = &allowance{left: postBurst, at: now}
		l.kept[key] = a
	}
	a.left = min(postBurst, a.left+postRate*now.Sub(a.at).Seconds())
	a.at = now
	if a.left < 1 {
		return &refusal{
			status:  http.StatusTooManyRequests,
			message: "too many posts in a short time",
			retry:   int(math.Ceil((1 - a.left) / postRate)),
		}
	}
	a.left--
	return nil
}
