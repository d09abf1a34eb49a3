// Package testenv says what the machine offers to a test. A test that needs a tool
// which is missing is skipped on a developer's machine, with a notice that says
// what to install, but fails where CI=true, so that a green build never means
// "nothing was tested".
package testenv

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// Size returns full, or small where the test was built with the race detector: it makes a test of a
// single goroutine some ten times slower and finds nothing there.
func Size(full, small int) int {
	if Race {
		return small
	}
	return full
}

// MuchData leaves a test out where it was built with the race detector, for the same reason. "make
// test" runs it without.
func MuchData(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("much data passes through few goroutines: make test runs it without the race detector")
	}
}

// Stride returns the step of a test that breaks something at every position: 1 in "make soak", else
// full, or small where the test was built with the race detector. Odd strides reach positions of
// both parities.
func Stride(full, small int) int {
	if os.Getenv("FIT_SOAK") != "" {
		return 1
	}
	return Size(full, small)
}

// Measurement leaves a test that measures out of "make test", where the machine has other work. The
// given target of the Makefile runs it.
func Measurement(t testing.TB, target string) {
	t.Helper()
	if os.Getenv("FIT_BENCH") == "" {
		t.Skipf("it measures, and needs the machine for itself: run make %s", target)
	}
}

// Soak leaves a test that takes minutes out of "make test". "make soak" runs it.
func Soak(t testing.TB) {
	t.Helper()
	if os.Getenv("FIT_SOAK") == "" {
		t.Skip("it takes minutes: run make soak")
	}
}

// Limits returns the time limits that a test tries, one after the other, until the machine is fast
// enough.
func Limits() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 3 * time.Minute}
}

// Missing ends the test because something it needs is not there: skipped with the
// given notice, or failed where CI=true.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing where CI=true: "+format, args...)
		return
	}
	t.Skipf("skipped, missing: "+format, args...)
}

// NeedTool returns the path of the named program, or ends the test through
// Missing when it is not in PATH.
func NeedTool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "the program %s is not in PATH", name)
	}
	return path
}
