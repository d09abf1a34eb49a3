//go:build race

package testenv

// Race reports whether the test was built with the race detector.
const Race = true
