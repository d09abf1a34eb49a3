package untrusted

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/helper"
	"github.com/fit-eval/fit/internal/sandbox/proc"
	"github.com/fit-eval/fit/internal/sandbox/seccomp"
)

// start starts the program in the best way that the kernel allows. In a new PID namespace
// it can name only its own processes, and they end with it. A user namespace protects the processes
// that it may still see in /proc. Root without privileges, as in our sandbox, may not map its own
// user id; it still has its files.
func start(program string, args []string, files Files) (cmd *exec.Cmd, err error) {
	view, err := json.Marshal(files)
	if err != nil {
		return nil, err
	}
	user, group := os.Geteuid(), os.Getegid()
	same := namespaces(unix.CLONE_NEWUSER)
	same.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: user, Size: 1}}
	same.GidMappings = []syscall.SysProcIDMap{{ContainerID: group, HostID: group, Size: 1}}
	for _, way := range []struct {
		name       string
		attributes *syscall.SysProcAttr
	}{
		{initName, same},
		{initName, namespaces(unix.CLONE_NEWUSER)}, // it is nobody there
		{refusedName, namespaces(0)},
		{refusedName, &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}},
	} {
		argv := append([]string{way.name, string(view), program}, args...)
		cmd = files.command("/proc/self/exe", argv, way.attributes)
		if err = cmd.Start(); err == nil {
			break
		}
	}
	return cmd, err
}

// ends reports whether what a program leaves ends with it.
func ends(attributes *syscall.SysProcAttr) bool { return attributes.Cloneflags&unix.CLONE_NEWPID != 0 }

// namespaces returns the attributes of a process 1 that may mount the /proc of its namespace.
func namespaces(more uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid:      true,
		Pdeathsig:   unix.SIGKILL,
		Cloneflags:  unix.CLONE_NEWPID | unix.CLONE_NEWNS | more,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT},
	}
}

var _ = helper.Become(initName, become) || helper.Become(refusedName, becomeRefused)

// becomeRefused is become where reach must be refused.
func becomeRefused(args []string) (status int) {
	runtime.LockOSThread() // privileges belong to threads
	refuseReach()
	return become(args)
}

// become continues in the process that start has started.
func become(args []string) (status int) {
	var files Files
	if len(args) < 3 || json.Unmarshal([]byte(args[0]), &files) != nil {
		return statusUsage
	}
	program, args := args[1], args[2:]
	runtime.LockOSThread() // privileges belong to threads
	proc.CloseAllOnExec()
	if os.Getpid() == 1 {
		return runInit(program, args, files)
	}
	if err := files.enter(); err != nil {
		return failure(args[0], err)
	}
	return failure(args[0], syscall.Exec(program, args, os.Environ()))
}

// runInit is process 1: it starts the program, reaps its children, and ends with the program,
// which ends everything else. It holds nothing that the program does not have as well.
func runInit(program string, args []string, files Files) int {
	// Signals from inside end a process 1 only if it has handlers that let them, as Go has.
	signal.Notify(make(chan os.Signal, 1))
	// If memory runs out, the program is killed before those that check it.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	mountOwnProc()
	if err := enterView(files); err != nil {
		return failure(args[0], err)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	pid, err := syscall.ForkExec(program, args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return failure(args[0], err)
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return failure(args[0], err)
		case ended == pid:
			return shellStatus(status)
		}
	}
}

// mountOwnProc shows the program its own processes only. In our sandbox nothing can be mounted, and
// the program sees that others exist.
func mountOwnProc() {
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") == nil {
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
}

// enterView shows the program what our sandbox has for it, and nothing else. In a root of its own
// it cannot make user namespaces, so it cannot leave. Containers have no such root, and some
// machines give no privileges in a user namespace; there, files are hidden one by one.
func enterView(files Files) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if unix.Chroot(Root) != nil {
		return files.enter()
	}
	_ = os.Setenv("TMPDIR", "/tmp")
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("it sees the work and the system, and is to start elsewhere: %w", err)
	}
	return nil
}

// refuseReach keeps what this thread starts from signalling, tracing and limiting other processes,
// where the kernel can (Linux 6.12). It serves where there are no user namespaces.
func refuseReach() {
	rules := struct{ files, network, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)),
		unsafe.Sizeof(rules), 0)
	if errno != 0 || unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return
	}
	_, _, _ = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	_ = unix.Close(int(fd))
	// Landlock lets a process set the limits of another one of the same user, and with a limit of
	// no time a process is killed.
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccomp.Number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PRLIMIT64, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccomp.Argument},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1}, // its own
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_ = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
