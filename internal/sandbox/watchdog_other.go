//go:build unix && !linux

package sandbox

import "time"

// Watchdog does nothing here: it needs Linux.
type Watchdog struct{}

// StartWatchdog returns a watchdog that does nothing.
func StartWatchdog() (*Watchdog, error) { return &Watchdog{}, nil }

// Within does nothing.
func (*Watchdog) Within(time.Duration) {}

// Close does nothing.
func (*Watchdog) Close() error { return nil }
