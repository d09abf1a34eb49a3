package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrUntested is wrapped by errors that do not say what a machine offers: each attempt to find out
// met an accident, such as too many open files.
var ErrUntested = errors.New("an accident, which does not say whether it works here")

// accidents are errors of the system that pass. ENOSPC does not belong to them: the kernel returns
// it where namespaces are forbidden, too.
var accidents = []error{
	syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR, syscall.ETXTBSY,
	errSupervisorDied, context.DeadlineExceeded,
}

var errSupervisorDied = errors.New("its supervisor died")

// killedError says that something killed bubblewrap.
type killedError struct{ signal string }

func (e *killedError) Error() string { return "bubblewrap was ended by " + e.signal }

// isAccident reports whether a failed attempt says nothing about the machine. What bubblewrap
// reports is text.
func isAccident(err error) bool {
	text := strings.ToLower(err.Error())
	return errors.As(err, new(*killedError)) || slices.ContainsFunc(accidents, func(known error) bool {
		return errors.Is(err, known) || strings.HasSuffix(text, ": "+known.Error())
	})
}

// isRefused reports whether the machine does not allow what was tried: no other attempt is needed.
func isRefused(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "permission") || strings.Contains(text, "not permitted")
}

// tryPauses lie between attempts. Together they are longer than a burst of processes, and short for
// a command that starts where nothing works.
var tryPauses = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond}

// tryAgain repeats an attempt to find out what the machine offers until it succeeds or says
// something about the machine. What is an accident in the end wraps ErrUntested.
func tryAgain(ctx context.Context, try func() error) error {
	err := try()
	for _, pause := range tryPauses {
		if err == nil || isRefused(err) || errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		err = try()
	}
	if err != nil && isAccident(err) {
		return fmt.Errorf("%w (%w)", err, ErrUntested)
	}
	return err
}

// fixFor returns what to do about a failed attempt.
func fixFor(err error, fix string) string {
	if errors.Is(err, ErrUntested) {
		return "try again, with fewer processes and open files and more free memory"
	}
	return fix
}
