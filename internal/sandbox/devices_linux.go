package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// devicesName is the name under which our binary closes the device files and becomes bubblewrap,
// where we are not root; it appears in ps.
const devicesName = "fit-sandbox-devices"

// sharedDevices are the files of /dev that bubblewrap shows as they are on the machine.
var sharedDevices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// closeDevices keeps programs from changing the times of these files, which everybody with write
// access may do: the times stay, and a later run could read a message in them. If a kernel cannot
// do it, TryEscape finds out.
func closeDevices() {
	for _, name := range sharedDevices {
		path := "/dev/" + name
		tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			continue
		}
		readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, readOnly) == nil {
			_ = unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
		_ = unix.Close(tree)
	}
}

// startWithoutDevices starts bubblewrap in a user namespace in which the device files are closed.
// Bubblewrap itself can mount them read-only only in a way that makes them useless. It returns 0
// where users cannot make namespaces.
func startWithoutDevices(argv []string, attributes syscall.ProcAttr) int {
	sys := *attributes.Sys
	sys.Cloneflags = unix.CLONE_NEWNS
	allow(&sys, unix.CAP_SYS_ADMIN) // to mount them
	attributes.Sys = &sys
	// The files that map the users of a namespace are not accessible to the children of a process
	// that is not dumpable. Nothing hostile runs yet.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return 0
	}
	pid, err := syscall.ForkExec("/proc/self/exe", append([]string{devicesName}, argv...), &attributes)
	if closed := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil || closed != nil {
		return 0
	}
	return pid
}

// becomeIsolated is the other side of startWithoutDevices. It returns only if bubblewrap cannot be
// started.
func becomeIsolated(args []string) (status int) {
	runtime.LockOSThread() // privileges belong to threads
	closeDevices()
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err == nil && len(args) > 0 {
		err = syscall.Exec(args[0], args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "fit:", err)
	return untrusted.StatusNotFound
}
