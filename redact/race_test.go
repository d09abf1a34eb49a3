//go:build race

package redact

// everyNth thins out the long tests of a single goroutine, about which the race
// detector has nothing to say. Without it they run in full.
const everyNth = 10
