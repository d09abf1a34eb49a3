package memo_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fit-eval/fit/internal/memo"
)

func TestEverythingIsFoundOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table memo.Table[string]
		var searches atomic.Int64
		start, answers := make(chan struct{}), make(chan string, 10)
		for range 10 {
			go func() {
				found, err := table.Get(t.Context(), "key", func() (string, error) {
					<-start
					return fmt.Sprint("found ", searches.Add(1)), nil
				})
				answers <- fmt.Sprint(found, err)
			}()
		}
		synctest.Wait()
		close(start)
		for range 10 {
			if got := <-answers; got != "found 1<nil>" {
				t.Error(got)
			}
		}
	})
}

func TestAnErrorIsSharedAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table memo.Table[int]
		// the search itself took too long: whoever waited for it does not take as long again
		broken, fail := fmt.Errorf("git: %w", context.DeadlineExceeded), make(chan struct{})
		first := make(chan error, 2)
		var searches atomic.Int64
		for range 2 {
			go func() {
				_, err := table.Get(t.Context(), "key", func() (int, error) {
					searches.Add(1)
					<-fail
					return 0, broken
				})
				first <- err
			}()
		}
		synctest.Wait()
		close(fail)
		for range 2 {
			if err := <-first; !errors.Is(err, broken) {
				t.Error(err)
			}
		}
		if searches.Load() != 1 {
			t.Errorf("%d searches", searches.Load())
		}
		found, err := table.Get(t.Context(), "key", func() (int, error) { return 7, nil })
		if found != 7 || err != nil {
			t.Error(found, err)
		}
	})
}

func TestWhoeverWaitedForACancelledSearchSearchesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table memo.Table[int]
		impatient, cancel := context.WithCancelCause(t.Context())
		answers := make(chan string, 2)
		go func() {
			_, err := table.Get(impatient, "key",
				func() (int, error) { <-impatient.Done(); return 0, context.Cause(impatient) })
			answers <- fmt.Sprint("first ", err)
		}()
		synctest.Wait()
		go func() {
			found, err := table.Get(t.Context(), "key", func() (int, error) { return 7, nil })
			answers <- fmt.Sprint(found, err)
		}()
		synctest.Wait()
		given, giveUp := context.WithCancel(t.Context())
		giveUp()
		if _, err := table.Get(given, "key", func() (int, error) { return 1, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("one that gave up got %v", err)
		}
		cancel(errors.New("not wanted any more"))
		got := map[string]bool{<-answers: true, <-answers: true}
		if !got["first not wanted any more"] || !got["7 <nil>"] && !got["7<nil>"] {
			t.Error(got)
		}
	})
}

// TestAPanicEndsTheWait: whoever waits for a lookup that panics gets an error, and the next caller
// looks again.
func TestAPanicEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var table memo.Table[int]
		waited, release := make(chan error), make(chan struct{})
		go func() {
			defer func() { _ = recover() }()
			_, _ = table.Get(t.Context(), "key", func() (int, error) {
				<-release
				panic("no value")
			})
		}()
		synctest.Wait() // until it looks the value up
		go func() {
			_, err := table.Get(t.Context(), "key", func() (int, error) { return 1, nil })
			waited <- err
		}()
		synctest.Wait() // until the other one waits for it
		close(release)
		if err := <-waited; err == nil {
			t.Error("the value of a lookup that panicked")
		}
		value, err := table.Get(t.Context(), "key", func() (int, error) { return 2, nil })
		if err != nil || value != 2 {
			t.Errorf("%d %v", value, err)
		}
	})
}
