//go:build unix && !linux

package proc

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func memoryExceeds([]int, uint64, uint64) bool { return false }

func unnamedFiles([]int) (memory, disk uint64, ok bool) { return 0, 0, true }

func filesInMemory([]int) uint64 { return 0 }

// Descendants finds nothing: this system does not let us look into processes.
func Descendants(int) []int { return nil }

// Supervised finds nothing, as above.
func Supervised(int) []int { return nil }

// ConnectionHolders cannot find out, as above.
func ConnectionHolders(net.Conn) ([]int, error) {
	return nil, errors.New("this system does not show which process holds a connection")
}

// Stat knows nothing, as above.
func Stat(string) []string { return nil }

// Find finds nothing, as above. The spawner has killed the process group.
func Find(string, []string, int) []int { return nil }

// KillStrays kills what is left of the process group.
func KillStrays(program int, _ string, _ map[int]bool, limit time.Duration) (killed int, unkillable []int) {
	deadline := time.Now().Add(limit)
	for unix.Kill(-program, unix.SIGKILL) == nil {
		killed = 1
		if time.Now().After(deadline) {
			return killed, []int{program}
		}
		time.Sleep(time.Millisecond)
	}
	return killed, nil
}

// CloseAllOnExec marks every descriptor that a hook may have opened.
func CloseAllOnExec() {
	const highest = 256
	for fd := 3; fd < highest; fd++ {
		syscall.CloseOnExec(fd)
	}
}
