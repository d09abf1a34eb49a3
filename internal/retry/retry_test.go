package retry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

var errBroken = errors.New("broken")

// failing returns errors for the first attempts and then succeeds.
func failing(errs ...error) func(int) error {
	return func(attempt int) error {
		if attempt <= len(errs) {
			return errs[attempt-1]
		}
		return nil
	}
}

func TestPausesDoubleAndAServersWishIsTheLeast(t *testing.T) {
	later := Later(errBroken, Unasked)
	for _, test := range []struct {
		name   string
		random float64
		errs   []error
		pauses string
		want   error
	}{
		{"no failure", 0, nil, "[]", nil},
		{"doubling, up to the longest", 1, []error{later, later, later, later}, "[1s 2s 4s 5s]", nil},
		{"half of it is drawn", 0, []error{later, later}, "[500ms 1s]", nil},
		{"used up", 1, []error{later, later, later, later, later}, "[1s 2s 4s 5s]", errBroken},
		{"final", 1, []error{later, errBroken}, "[1s]", errBroken},
		{"asked", 0, []error{Later(errBroken, 7*time.Second)}, "[7s]", nil},
		{"asked, with a little on top", 1, []error{Later(errBroken, 0)}, "[200ms]", nil},
		{"asked for too much", 0, []error{Later(errBroken, time.Hour)}, "[]", errBroken},
		{"marked and wrapped", 1, []error{fmt.Errorf("outer: %w", later)}, "[1s]", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pauses []time.Duration
			policy := Policy{
				Retries:      4,
				First:        time.Second,
				Longest:      5 * time.Second,
				LongestAsked: time.Minute,
				Random:       func() float64 { return test.random },
				Sleep: func(_ context.Context, pause time.Duration) error {
					pauses = append(pauses, pause)
					return nil
				},
			}
			noted := 0
			policy.OnRetry = func(attempt int, _ time.Duration, err error) {
				if noted++; attempt != noted || !errors.Is(err, errBroken) {
					t.Errorf("retry %d noted as %d, %v", noted, attempt, err)
				}
			}
			err := policy.Do(t.Context(), failing(test.errs...))
			if err != test.want { // not errors.Is: the mark must be gone
				t.Errorf("error %v, want %v", err, test.want)
			}
			if fmt.Sprint(pauses) != test.pauses || noted != len(pauses) {
				t.Errorf("pauses %v (%d noted), want %s", pauses, noted, test.pauses)
			}
		})
	}
}

func TestTheContextEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errBroken)
		defer cancel()
		start := time.Now()
		err := Policy{Retries: 9, First: time.Hour, Longest: time.Hour}.Do(ctx,
			func(int) error { return Later(errors.New("refused"), Unasked) })
		if !errors.Is(err, errBroken) || time.Since(start) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if err := (Policy{}).Do(ctx, func(int) error { return ctx.Err() }); !errors.Is(err, errBroken) {
			t.Errorf("the end of the context was reported as %v", err)
		}
	})
}

func TestWhatAServerAsksFor(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		key, value string
		want       time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", " 0.5 ", 500 * time.Millisecond},
		{"retry-after-ms", "250", 250 * time.Millisecond},
		{"Retry-After", now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		{"Retry-After", now.Add(-time.Minute).Format(http.TimeFormat), 0},
		{"Retry-After", now.Add(time.Hour * 9999).Format(http.TimeFormat), 24 * time.Hour},
		{"Retry-After", "1e300", 24 * time.Hour},
		{"Retry-After", "inf", 24 * time.Hour},
		{"Retry-After", "-1", Unasked},
		{"Retry-After", "NaN", Unasked},
		{"Retry-After", "soon", Unasked},
		{"Other", "7", Unasked},
	} {
		t.Run(test.key, func(t *testing.T) {
			header := http.Header{}
			header.Set(test.key, test.value)
			if got := Asked(header, now); got != test.want {
				t.Errorf("%s gives %s, want %s", test.value, got, test.want)
			}
		})
	}
}
