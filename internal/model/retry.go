package model

import (
	"errors"
	"time"

	"github.com/fit-eval/fit/internal/retry"
)

// The defaults of the retry policy.
const (
	DefaultMaxRetries = 4
	firstBackoff      = 500 * time.Millisecond
	longestBackoff    = 30 * time.Second
	// longestRetryAfter limits the wait that a service may ask for; beyond it the call fails at
	// once instead of waiting for hours.
	longestRetryAfter = 10 * time.Minute
)

// RetryInfo describes a retry that is about to happen.
type RetryInfo struct {
	// Attempt is the number of the request that failed, from 1.
	Attempt    int
	MaxRetries int
	Delay      time.Duration
	Err        *Error
}

// policy returns how often and when a request is repeated.
func (c Config) policy() retry.Policy {
	p := retry.Policy{
		Retries:      c.MaxRetries,
		First:        firstBackoff,
		Longest:      longestBackoff,
		LongestAsked: longestRetryAfter,
		Sleep:        c.Sleep,
	}
	switch {
	case c.MaxRetries == 0:
		p.Retries = DefaultMaxRetries
	case c.MaxRetries < 0:
		p.Retries = 0
	}
	if c.OnRetry != nil {
		p.OnRetry = func(attempt int, pause time.Duration, err error) {
			info := RetryInfo{Attempt: attempt, MaxRetries: p.Retries, Delay: pause}
			errors.As(err, &info.Err)
			c.OnRetry(info)
		}
	}
	return p
}
