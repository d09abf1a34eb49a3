package console

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes of every command.
const (
	ExitGood        = 0   // done, and the verdict is positive or there was none to give
	ExitNegative    = 1   // done, and the verdict, assertion or gate is negative
	ExitUsage       = 2   // usage error, or refused by a safeguard
	ExitIncomplete  = 3   // infrastructure error, or the work is incomplete
	ExitBudget      = 4   // stopped by a budget
	ExitInterrupted = 130 // stopped by a signal
)

// Error is an error that knows the exit code it deserves. Err may be nil: the command has said all
// there is to say and only the code is left.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usagef reports a mistake in how a command was called; it exits with ExitUsage.
func Usagef(format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Exit gives err an exit code. A nil err exits silently.
func Exit(code int, err error) error { return &Error{Code: code, Err: err} }

// Exitf is Exit with a formatted message.
func Exitf(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Code returns the exit code for an error of a command: the code it carries, ExitInterrupted for a
// cancelled context, and ExitIncomplete for anything else, because an error nobody classified is a
// failure of the machinery and not a verdict.
func Code(err error) int {
	var coded *Error
	switch {
	case err == nil:
		return ExitGood
	case errors.As(err, &coded):
		return coded.Code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	default:
		return ExitIncomplete
	}
}
