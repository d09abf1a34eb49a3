package model

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The defaults of the retry policy.
const (
	DefaultMaxRetries = 4
	firstBackoff      = 500 * time.Millisecond
	longestBackoff    = 30 * time.Second
	// longestRetryAfter bounds what a service may ask for; beyond it the caller learns at once
	// instead of waiting for hours.
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

// retryPolicy decides how often and when to try again.
type retryPolicy struct {
	maxRetries int
	onRetry    func(RetryInfo)
	sleep      func(context.Context, time.Duration) error
	random     func() float64
}

// errDelivered marks a failure after the caller has seen part of the reply, which must not be asked
// for again.
type errDelivered struct{ cause *Error }

func (e errDelivered) Error() string { return e.cause.Error() }

// do calls try until it succeeds, fails for good, or the retries are used up.
func (p retryPolicy) do(ctx context.Context, try func(attempt int) error) error {
	for attempt := 1; ; attempt++ {
		err := try(attempt)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var delivered errDelivered
		if errors.As(err, &delivered) {
			delivered.cause.Attempts = attempt
			return delivered.cause
		}
		var failure *Error
		if !errors.As(err, &failure) {
			return err
		}
		failure.Attempts = attempt
		if !failure.Retryable || attempt > p.maxRetries || failure.RetryAfter > longestRetryAfter {
			return failure
		}
		delay := p.delay(attempt, failure.RetryAfter)
		if p.onRetry != nil {
			p.onRetry(RetryInfo{
				Attempt:    attempt,
				MaxRetries: p.maxRetries,
				Delay:      delay,
				Err:        failure,
			})
		}
		if err := p.sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// delay grows twofold with every attempt. Half of it is drawn at random, so that clients that
// failed together do not come back together; what the service asked for is taken as the least, with
// a little on top for the same reason.
func (p retryPolicy) delay(attempt int, asked time.Duration) time.Duration {
	if asked >= 0 {
		return asked + time.Duration(p.random()*float64(firstBackoff)/5)
	}
	backoff := float64(firstBackoff) * math.Pow(2, float64(attempt-1))
	backoff = min(backoff, float64(longestBackoff))
	return time.Duration(backoff * (0.5 + p.random()/2))
}

func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func randomFraction() float64 { return rand.Float64() } //nolint:gosec // jitter needs no secrecy

// retryAfter reads how long the service asks to wait: milliseconds in OpenAI's header, seconds or a
// date in the standard one. It is negative where there is no such wish.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(header.Get("retry-after-ms")), 64); err == nil && ms >= 0 {
		return boundedDuration(ms * float64(time.Millisecond))
	}
	value := strings.TrimSpace(header.Get("retry-after"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		return boundedDuration(seconds * float64(time.Second))
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return -1
}

func boundedDuration(nanoseconds float64) time.Duration {
	if math.IsNaN(nanoseconds) {
		return -1
	}
	return time.Duration(min(nanoseconds, float64(24*time.Hour)))
}
