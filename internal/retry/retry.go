// Package retry repeats requests after transient failures.
//
//	policy := retry.Policy{Retries: 4, First: time.Second, Longest: time.Minute}
//	err := policy.Do(ctx, func(attempt int) error {
//		response, err := client.Do(request)
//		if err != nil {
//			return retry.Later(err, retry.Unasked)
//		}
//		if response.StatusCode >= 500 {
//			return retry.Later(errBroken, retry.Asked(response.Header, time.Now()))
//		}
//		return use(response)
//	})
package retry

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Policy says how often and when a failed request is repeated. The zero Policy never repeats one.
type Policy struct {
	// Retries is how often a request is repeated after its first failure.
	Retries int
	// First is the pause after the first failure. It doubles with every further one, up to Longest.
	First, Longest time.Duration
	// LongestAsked bounds the pause that a server may ask for. If the server asks for a longer
	// pause, the request fails immediately. 0 is no bound.
	LongestAsked time.Duration
	// OnRetry, if set, is called before each pause with the number of the attempt that failed,
	// counted from 1.
	OnRetry func(attempt int, pause time.Duration, err error)
	// Sleep waits; nil means the real clock. An error ends the retries and is returned.
	Sleep func(ctx context.Context, pause time.Duration) error
	// Random returns a number in [0, 1); nil means a good source.
	Random func() float64
}

// Unasked is the pause of a server that asked for none.
const Unasked time.Duration = -1

// laterError marks an error that another attempt may cure.
type laterError struct {
	error
	asked time.Duration
}

func (e laterError) Unwrap() error { return e.error }

// Later marks an error that another attempt may cure. asked is the pause that the server asked for,
// or Unasked.
func Later(err error, asked time.Duration) error { return laterError{err, asked} }

// MayPass reports whether Later has marked an error, and the pause that the server asked for.
func MayPass(err error) (asked time.Duration, ok bool) {
	later, ok := errors.AsType[laterError](err)
	return later.asked, ok
}

// Do calls try with the number of the attempt, counted from 1, until it succeeds, fails with an
// error that Later has not marked, or the retries are used up. It returns the last error without
// its mark, or the cause of the context's end.
func (p Policy) Do(ctx context.Context, try func(attempt int) error) error {
	for attempt := 1; ; attempt++ {
		err := try(attempt)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		later, ok := errors.AsType[laterError](err)
		if !ok {
			return err
		}
		if attempt > p.Retries || p.LongestAsked > 0 && later.asked > p.LongestAsked {
			return later.error
		}
		pause := p.pause(attempt, later.asked)
		if p.OnRetry != nil {
			p.OnRetry(attempt, pause, later.error)
		}
		if err := p.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// pause draws half of a pause at random, so that clients that failed together do not come back
// together. What the server asked for is the least, with a little on top for the same reason.
func (p Policy) pause(attempt int, asked time.Duration) time.Duration {
	random := p.Random
	if random == nil {
		random = rand.Float64 //nolint:gosec // jitter needs no secrecy
	}
	if asked >= 0 {
		return asked + time.Duration(random()*float64(p.First)/5)
	}
	pause := float64(p.First) * math.Pow(2, float64(attempt-1))
	return time.Duration(min(pause, float64(p.Longest)) * (0.5 + random()/2))
}

func (p Policy) sleep(ctx context.Context, pause time.Duration) error {
	if p.Sleep != nil {
		return p.Sleep(ctx, pause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Asked reads the pause that a server asks for: milliseconds in retry-after-ms, seconds or a date
// in Retry-After. It is Unasked where there is none, and never more than a day.
//
// The header is an http.Header. The package must not import net/http: sandbox imports this package,
// and its supervisors would then initialise everything that HTTP needs.
func Asked(header interface{ Get(name string) string }, now time.Time) time.Duration {
	if pause, ok := number(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return pause
	}
	value := header.Get("Retry-After")
	if pause, ok := number(value, time.Second); ok {
		return pause
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} { // those of HTTP
		if date, err := time.Parse(layout, strings.TrimSpace(value)); err == nil {
			return min(max(0, date.Sub(now)), longestPause)
		}
	}
	return Unasked
}

const longestPause = 24 * time.Hour

func number(text string, unit time.Duration) (time.Duration, bool) {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(value) || value < 0 {
		return 0, false
	}
	return time.Duration(min(value*float64(unit), float64(longestPause))), true
}
