package first

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// lastSignal is the highest number of a signal.
const lastSignal = 64

// supervise is process 1 of a sandbox: it starts the process that becomes the program, closes
// itself to it, and ends with it, which ends everything else. It returns only if there is no such
// process.
func (s Settings) supervise(program []string) error {
	var gate [2]int // the process waits at one end until the other is closed
	if err := syscall.Pipe2(gate[:], syscall.O_CLOEXEC); err != nil {
		return failed("open a pipe", err)
	}
	self := "/proc/self/fd/" + strconv.Itoa(s.SelfFD)
	syscall.CloseOnExec(s.SelfFD)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(gate[0]), syscall.F_SETFD, 0); errno != 0 {
		return failed("pass a pipe on", errno)
	}
	s.SelfFD = gate[0]
	pid, err := syscall.ForkExec(self, s.Argv(program[0], program[1:]), &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		return failed("start a process", err)
	}
	closeToProgram()
	os.Exit(outlive(pid))
	return nil
}

// awaitSupervision returns when process 1 is closed to us.
func (s Settings) awaitSupervision() {
	_, _ = syscall.Read(s.SelfFD, make([]byte, 1)) // its end
	_ = syscall.Close(s.SelfFD)
}

// closeToProgram leaves process 1 nothing that is of use to somebody else, and lets nobody of the
// same user read or change it. Signals from inside reach a process 1 only if it handles them, as Go
// does, so it no longer does. All descriptors are closed last: the program is started then.
func closeToProgram() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0)
	_ = dropPrivileges()
	var byDefault [4]uint64 // the kernel's description of what to do about a signal
	for signal := uintptr(1); signal <= lastSignal; signal++ {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	}
	const closeRange, last = 436, 1<<32 - 1 // the number of the call is the same on all machines
	if _, _, errno := syscall.RawSyscall(closeRange, 0, last, 0); errno == 0 {
		return
	}
	var limit syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	for fd := range int(min(limit.Cur, 1<<16)) {
		_ = syscall.Close(fd)
	}
}

// outlive waits for the end of a process, and for that of every orphan until then. It returns the
// status as shells and bubblewrap have it.
func outlive(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err != nil && !errors.Is(err, syscall.EINTR):
			return statusNotFound
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal())
		case ended == pid:
			return status.ExitStatus()
		}
	}
}
