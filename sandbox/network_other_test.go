//go:build !linux

package sandbox_test

func playNetwork(string) int { return 99 }
