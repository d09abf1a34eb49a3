// Package first does what remains between the start of a process and the program that it becomes:
// it sets limits, which would also affect its supervisor, and in a sandbox the user, which
// bubblewrap cannot change, and the working directory, which only that user may enter. In a sandbox
// it is process 1 as well: bubblewrap's own one would be open to a program of the same user.
//
// It happens in our own binary, before main. The package imports nothing that imports more than os,
// neither fmt nor strings, so that Go initialises it before everything else: half of such a start
// would be spent on packages that are not used.
package first

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/fit-eval/fit/internal/helper"
)

// name is the name of our binary while it does this; it appears in ps.
const name = "fit-sandbox-first"

// Started is reported when only the program remains to be started. An error follows if that fails.
const Started = "started\n"

// statusNotFound is the exit status of a process that could not become the program.
const statusNotFound = 127

// Settings says what a process sets up before it becomes the program.
type Settings struct {
	UID int
	Dir string
	// StartFD is where to report, and SelfFD the file that we were started from; 0 outside a
	// sandbox. The process that becomes the program has a pipe there, which ends when process 1 is
	// closed to it.
	StartFD, SelfFD int
	// Limits are set in this order.
	Limits []Limit
}

// Limit is a resource limit of the kernel.
type Limit struct {
	Resource int
	Value    uint64
}

var _ = helper.Become(name, become)

// become returns only if this process could not become the program.
func become(args []string) (status int) {
	runtime.LockOSThread() // users belong to threads
	s, program, err := decode(args)
	if err == nil && s.SelfFD != 0 {
		if os.Getpid() == 1 {
			err = s.supervise(program)
		} else {
			s.awaitSupervision()
		}
	}
	if err == nil {
		err = s.Enter()
	}
	if err == nil {
		err = s.Start(program[0], program[1:])
	}
	s.Fail(err)
	return statusNotFound
}

// end follows the numbers of a command line.
const end = "--"

// Argv returns the command line of our binary that becomes the program.
func (s Settings) Argv(program string, argv []string) []string {
	args := []string{name, s.Dir, strconv.Itoa(s.UID), strconv.Itoa(s.StartFD), strconv.Itoa(s.SelfFD)}
	for _, limit := range s.Limits {
		args = append(args, strconv.Itoa(limit.Resource), strconv.FormatUint(limit.Value, 10))
	}
	return append(append(args, end, program), argv...)
}

// decode parses what Argv returns; program is what follows the settings.
func decode(args []string) (s Settings, program []string, err error) {
	var numbers []uint64
	for i := 1; i < len(args); i++ {
		if args[i] == end {
			program = args[i+1:]
			break
		}
		number, err := strconv.ParseUint(args[i], 10, 64)
		if err != nil {
			return s, nil, err
		}
		numbers = append(numbers, number)
	}
	if len(numbers) < 3 || len(numbers)%2 == 0 || len(program) < 2 {
		return s, nil, errors.New("no settings, or no program")
	}
	s = Settings{Dir: args[0], UID: int(numbers[0])}                  //nolint:gosec // Argv wrote them
	s.StartFD, s.SelfFD = int(numbers[1]), int(numbers[2])            //nolint:gosec // as above
	for limits := numbers[3:]; len(limits) > 0; limits = limits[2:] { // resource and value
		s.Limits = append(s.Limits, Limit{Resource: int(limits[0]), Value: limits[1]}) //nolint:gosec // as above
	}
	return s, program, nil
}

// Enter becomes the user and enters the working directory.
func (s Settings) Enter() error {
	if s.StartFD != 0 {
		syscall.CloseOnExec(s.StartFD)
		_ = os.Setenv("PWD", s.Dir)
	}
	if s.UID != 0 {
		if err := dropTo(s.UID); err != nil {
			return failed("become user "+strconv.Itoa(s.UID), err)
		}
	}
	if s.Dir != "" {
		if err := syscall.Chdir(s.Dir); err != nil {
			return failed("enter "+s.Dir, err)
		}
	}
	return nil
}

// Start sets the limits and becomes the program. It returns only if that failed.
func (s Settings) Start(program string, argv []string) error {
	env := os.Environ()
	for _, limit := range s.Limits {
		if err := limit.apply(); err != nil {
			return failed("set resource limits", err)
		}
	}
	if s.StartFD != 0 {
		_, _ = syscall.Write(s.StartFD, []byte(Started))
	}
	return failed("start "+program, syscall.Exec(program, argv, env))
}

// failed returns an error that says what failed. The error is reported as text, so that nothing is
// lost.
func failed(what string, err error) error { return errors.New(what + ": " + err.Error()) }

// Fail reports why there is no program.
func (s Settings) Fail(err error) {
	if s.StartFD == 0 {
		_, _ = os.Stderr.WriteString("fit: " + err.Error() + "\n")
	} else {
		_, _ = syscall.Write(s.StartFD, []byte(err.Error()))
	}
}

// apply sets a limit of this process. It can only be lowered, never raised.
func (l Limit) apply() error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(l.Resource, &now); err != nil {
		return err
	}
	value := min(l.Value, now.Max)
	return syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: value, Max: value})
}

// dropTo makes this thread, which becomes the program, another user, with no group and no privilege
// but that user's.
func dropTo(uid int) error {
	if err := SetUser(uid, uid, nil); err != nil {
		return err
	}
	return dropPrivileges()
}

// dropPrivileges takes every privilege from this thread.
func dropPrivileges() error {
	header := struct {
		version uint32
		pid     int32
	}{version: 0x20080522} // the third, whose sets have 64 bits
	var none [2]struct{ effective, permitted, inheritable uint32 }
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	return errorOf(errno)
}

// SetUser makes this thread another user, with these groups and no other. The calls of the standard
// library would stop every other thread for it.
func SetUser(uid, gid int, groups []int) error {
	list := make([]uint32, len(groups))
	for i, group := range groups {
		list[i] = uint32(group) //nolint:gosec // numbers of groups are not negative
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS,
		uintptr(len(list)), uintptr(unsafe.Pointer(unsafe.SliceData(list))), 0)
	for _, call := range [][2]uintptr{{syscall.SYS_SETRESGID, uintptr(gid)}, {syscall.SYS_SETRESUID, uintptr(uid)}} {
		if errno == 0 {
			_, _, errno = syscall.RawSyscall(call[0], call[1], call[1], call[1])
		}
	}
	return errorOf(errno)
}

func errorOf(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
