package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// apply sets the limits of this process. They can only be lowered, never raised.
func (l Limits) apply() error {
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_CPU, l.CPUSeconds},
		{unix.RLIMIT_FSIZE, l.FileBytes},
		{unix.RLIMIT_NOFILE, l.OpenFiles},
		{unix.RLIMIT_NPROC, l.Processes},
		// Last: from here on our own runtime may not get memory any more.
		{unix.RLIMIT_DATA, l.MemoryBytes},
	} {
		if limit.value == 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(limit.resource, &now); err != nil {
			return err
		}
		value := min(limit.value, now.Max)
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return err
		}
	}
	return nil
}
