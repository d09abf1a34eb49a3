package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// hidden are the variables that were hidden: the process that started us may still show them.
var hidden atomic.Pointer[[]string]

// HideVariables takes the values of environment variables out of what the kernel shows of this
// process in /proc. os.Environ and os.Getenv still return them. A process that may read our memory
// still finds them there: see Exposes.
func HideVariables(names ...string) error {
	set := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return os.Getenv(name) == "" })
	if len(set) == 0 {
		return nil
	}
	hidden.Store(&set)
	if err := hideVariables(set); err != nil {
		return fmt.Errorf("hide credentials from /proc: %w", err)
	}
	return nil
}

func hideVariables(names []string) error {
	block, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	start, err := environmentStart()
	if err != nil {
		return err
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	var errs []error
	at := 0
	for variable := range bytes.SplitSeq(block, []byte{0}) {
		if name, value, _ := bytes.Cut(variable, []byte("=")); len(value) > 0 && slices.Contains(names, string(name)) {
			_, err := memory.WriteAt(make([]byte, len(value)), start+int64(at+len(name)+1))
			errs = append(errs, err)
		}
		at += len(variable) + 1
	}
	return errors.Join(errs...)
}

// environmentStart returns where the kernel has put the environment of this process.
func environmentStart() (int64, error) {
	const envStart = 50 - 3 // field 50 of all
	fields := proc.Stat("self")
	if len(fields) <= envStart {
		return 0, errors.New("the kernel does not say where the environment is")
	}
	return strconv.ParseInt(fields[envStart], 10, 64)
}

// protectMemory makes this process not dumpable: other processes of the same user can neither trace
// it nor read its environment, files and memory through /proc. It is for systems without
// namespaces, because such a process cannot make user namespaces for its children.
var protectMemory = sync.OnceValue(func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) })

// Exposes reports whether a program in this isolation can read the memory of the process that has
// started it, and with it every credential there, or a hidden variable in the environment of an
// ancestor of this process, such as the user's shell.
func (i Isolation) Exposes() bool {
	switch {
	case i.active():
		return false
	case os.Geteuid() == 0: // nothing is closed to root
		return true
	case namespaceWorks() == nil: // it does not see us
		return false
	default:
		return protectMemory() != nil || ancestorsShow(hidden.Load())
	}
}

// ancestorsShow reports whether the kernel shows a variable in an ancestor of this process.
func ancestorsShow(names *[]string) bool {
	if names == nil {
		return false
	}
	for pid := os.Getppid(); pid > 0; {
		block, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // one that is closed shows nothing
		above, _ := proc.Read(pid)
		pid = above.Parent
		for variable := range bytes.SplitSeq(block, []byte{0}) {
			if name, value, _ := bytes.Cut(variable, []byte("=")); len(value) > 0 &&
				slices.Contains(*names, string(name)) {
				return true
			}
		}
	}
	return false
}
