//go:build !linux

package sandbox_test

func playNetwork(string) int   { return 99 }
func playIsolated(string) int  { return 99 }
func playAttack([]string) int  { return 99 }
func playHide(string) int      { return 99 }
func playContainer(string) int { return 99 }
