// Package limit bounds how often something may happen.
package limit

import "time"

// Limiter is a token bucket.
type Limiter struct {
	rate   float64 // tokens per second
	burst  float64
	tokens float64
	last   time.Time
	now    func() time.Time
}

// New returns a limiter that allows rate events per second, and burst at once.
func New(rate, burst float64, now func() time.Time) *Limiter {
	return &Limiter{
		rate:   rate,
		burst:  burst,
		tokens: burst,
		last:   now(),
		now:    now,
	}
}

// Allow reports whether an event may happen now, and counts it if so.
func (l *Limiter) Allow() bool {
	now := l.now()
	l.tokens += now.Sub(l.last).Seconds() * l.rate
	l.last = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
