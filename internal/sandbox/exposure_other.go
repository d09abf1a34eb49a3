//go:build unix && !linux

package sandbox

// HideVariables cannot do anything here.
func HideVariables(...string) error { return nil }

// Exposes reports whether a program in this isolation can read the environment or the memory of the
// process that has started it. Here nothing prevents it.
func (Isolation) Exposes() bool { return true }
