package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limiterArgv wraps a program in one more start of our binary, which sets the limits
// on itself and then becomes the program. The supervisor cannot set them on itself,
// because it would suffer under them, nor on the running program, because by then it
// may have forked.
func limiterArgv(ord order) (program string, argv []string, err error) {
	limits, err := json.Marshal(ord.Limits)
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/exe", append([]string{limiterName, string(limits), ord.Program}, ord.Argv...), nil
}

// limitAndExec is the other side of limiterArgv. The directory and the environment
// are already those of the program. It returns only if that failed.
func limitAndExec() error {
	if len(os.Args) < 4 {
		return errors.New("no program to limit")
	}
	var limits Limits
	if err := json.Unmarshal([]byte(os.Args[1]), &limits); err != nil {
		return fmt.Errorf("read resource limits: %w", err)
	}
	env := os.Environ()
	if err := limits.apply(); err != nil {
		return fmt.Errorf("set resource limits: %w", err)
	}
	return fmt.Errorf("start %s: %w", os.Args[2], syscall.Exec(os.Args[2], os.Args[3:], env))
}

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
