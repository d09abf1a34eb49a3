package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/internal/first"
)

// rssUnit is the unit of the kernel's resident set size, in KiB.
const rssUnit = 1

// rlimits returns the limits that are set, as the kernel knows them.
func (l Limits) rlimits() []first.Limit {
	limits := []first.Limit{
		{Resource: unix.RLIMIT_CPU, Value: l.CPUSeconds},
		{Resource: unix.RLIMIT_FSIZE, Value: l.FileBytes},
		{Resource: unix.RLIMIT_NOFILE, Value: l.OpenFiles},
		{Resource: unix.RLIMIT_NPROC, Value: l.Processes},
		// Last: from here on our own runtime may not get memory.
		{Resource: unix.RLIMIT_DATA, Value: l.MemoryBytes},
	}
	return slices.DeleteFunc(limits, func(limit first.Limit) bool { return limit.Value == 0 })
}

// DefaultLimits returns the default limits of a program with a kind of isolation: generous, and low
// enough that one program does not take the machine from the others.
func DefaultLimits(kind string) Limits {
	limits := Limits{
		Processes:       4096,
		OpenFiles:       16384,
		FileBytes:       4 << 30,
		DiskBytes:       16 << 30,
		TreeMemoryBytes: max(4<<30, totalMemory()/2),
	}
	if kind != IsolationBwrap {
		limits.Processes = 0 // it would count everything that the user runs
	}
	return limits
}

func totalMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // its type differs by system
}
