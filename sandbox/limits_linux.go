package sandbox

import (
	"os"
	"strconv"
	"strings"
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
		// Last: from here on our own runtime may not get memory.
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

// DefaultLimits are the bounds of a program for which nobody sets any: generous, and low enough
// that one program does not take the machine from the others.
func DefaultLimits() Limits {
	return Limits{
		Processes:       4096,
		OpenFiles:       16384,
		FileBytes:       4 << 30,
		DiskBytes:       16 << 30,
		TreeMemoryBytes: max(4<<30, totalMemory()/2),
	}
}

func totalMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // its type differs by system
}

// memoryUsed adds up the memory of the processes below one that they share with no file.
func memoryUsed(root int) uint64 {
	var sum uint64
	page := uint64(os.Getpagesize()) //nolint:gosec // it is positive
	for _, pid := range descendants(root) {
		statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		if err != nil {
			continue
		}
		// The second field is what is resident, the third what of it belongs to files or is shared.
		if fields := strings.Fields(string(statm)); len(fields) > 2 {
			resident, _ := strconv.ParseUint(fields[1], 10, 64)
			shared, _ := strconv.ParseUint(fields[2], 10, 64)
			sum += (resident - min(shared, resident)) * page
		}
	}
	return sum
}
