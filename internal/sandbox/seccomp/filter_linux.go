package seccomp

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is a system call that no isolated program may make, and the error that it returns.
type call struct {
	name   string
	number uint32
	err    unix.Errno
}

// ownCalls are those of them that reach processes of the same sandbox only. Images bring debuggers,
// which need them; in bubblewrap, where programs of the harness are in reach too, they are refused.
var ownCalls = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
}

// refusedCalls are the system calls that reach into other processes, into the kernel, or into what
// sandboxes share: keys are kept per user and outlive a run. If programs try a call and can do
// without it, the error says that it does not exist. Bubblewrap and container engines get the same
// list.
var refusedCalls = []call{
	{name: "add_key", number: unix.SYS_ADD_KEY, err: unix.EPERM},
	{name: "request_key", number: unix.SYS_REQUEST_KEY, err: unix.EPERM},
	{name: "keyctl", number: unix.SYS_KEYCTL, err: unix.EPERM},

	{name: "ptrace", number: unix.SYS_PTRACE, err: unix.EPERM},
	{name: "process_vm_readv", number: unix.SYS_PROCESS_VM_READV, err: unix.EPERM},
	{name: "process_vm_writev", number: unix.SYS_PROCESS_VM_WRITEV, err: unix.EPERM},
	{name: "pidfd_getfd", number: unix.SYS_PIDFD_GETFD, err: unix.EPERM},

	{name: "bpf", number: unix.SYS_BPF, err: unix.EPERM},
	{name: "perf_event_open", number: unix.SYS_PERF_EVENT_OPEN, err: unix.EPERM},
	{name: "userfaultfd", number: unix.SYS_USERFAULTFD, err: unix.EPERM},

	{name: "mount", number: unix.SYS_MOUNT, err: unix.EPERM},
	{name: "umount2", number: unix.SYS_UMOUNT2, err: unix.EPERM},
	{name: "pivot_root", number: unix.SYS_PIVOT_ROOT, err: unix.EPERM},
	{name: "open_tree", number: unix.SYS_OPEN_TREE, err: unix.ENOSYS},
	{name: "move_mount", number: unix.SYS_MOVE_MOUNT, err: unix.ENOSYS},
	{name: "fsopen", number: unix.SYS_FSOPEN, err: unix.ENOSYS},
	{name: "fsconfig", number: unix.SYS_FSCONFIG, err: unix.ENOSYS},
	{name: "fsmount", number: unix.SYS_FSMOUNT, err: unix.ENOSYS},
	{name: "fspick", number: unix.SYS_FSPICK, err: unix.ENOSYS},
	{name: "mount_setattr", number: unix.SYS_MOUNT_SETATTR, err: unix.ENOSYS},
	{name: "open_tree_attr", number: unix.SYS_OPEN_TREE_ATTR, err: unix.ENOSYS},
	{name: "setns", number: unix.SYS_SETNS, err: unix.EPERM},

	{name: "kexec_load", number: unix.SYS_KEXEC_LOAD, err: unix.EPERM},
	{name: "kexec_file_load", number: unix.SYS_KEXEC_FILE_LOAD, err: unix.EPERM},
	{name: "init_module", number: unix.SYS_INIT_MODULE, err: unix.EPERM},
	{name: "finit_module", number: unix.SYS_FINIT_MODULE, err: unix.EPERM},
	{name: "delete_module", number: unix.SYS_DELETE_MODULE, err: unix.EPERM},
	{name: "reboot", number: unix.SYS_REBOOT, err: unix.EPERM},
	{name: "swapon", number: unix.SYS_SWAPON, err: unix.EPERM},
	{name: "swapoff", number: unix.SYS_SWAPOFF, err: unix.EPERM},
	{name: "acct", number: unix.SYS_ACCT, err: unix.EPERM},
	{name: "syslog", number: unix.SYS_SYSLOG, err: unix.EPERM},

	{name: "open_by_handle_at", number: unix.SYS_OPEN_BY_HANDLE_AT, err: unix.EPERM},

	{name: "io_uring_setup", number: unix.SYS_IO_URING_SETUP, err: unix.ENOSYS},
	{name: "io_uring_enter", number: unix.SYS_IO_URING_ENTER, err: unix.ENOSYS},
	{name: "io_uring_register", number: unix.SYS_IO_URING_REGISTER, err: unix.ENOSYS},

	{name: "kcmp", number: unix.SYS_KCMP, err: unix.EPERM},
	{name: "quotactl", number: unix.SYS_QUOTACTL, err: unix.EPERM},
	{name: "quotactl_fd", number: unix.SYS_QUOTACTL_FD, err: unix.EPERM},
	{name: "fanotify_init", number: unix.SYS_FANOTIFY_INIT, err: unix.EPERM},
	{name: "move_pages", number: unix.SYS_MOVE_PAGES, err: unix.EPERM},
	{name: "migrate_pages", number: unix.SYS_MIGRATE_PAGES, err: unix.EPERM},
	{name: "lookup_dcookie", number: unix.SYS_LOOKUP_DCOOKIE, err: unix.EPERM},
}

// sharedSockets are the families of sockets that no network namespace divides, so that two
// sandboxes without a network could talk to each other, or to the machine that this one is a guest
// of.
var sharedSockets = []uint32{unix.AF_VSOCK, unix.AF_ALG, unix.AF_TIPC, unix.AF_QIPCRTR, unix.AF_SMC, unix.AF_RDS}

// Where the kernel's struct seccomp_data has the number of the call, the instruction set, and the
// lower half of the first argument.
const (
	Number   = 0
	arch     = 4
	Argument = 16
)

// x32Calls is the first number of a second set of calls that amd64 kernels may have.
const x32Calls = 0x4000_0000

// Filter returns the program that bubblewrap loads: a list of comparisons. A program for
// another instruction set, whose calls have other numbers, finds no call at all. Where we do not
// know our own instruction set there is no filter.
func Filter() []byte {
	var encoded bytes.Buffer
	_ = binary.Write(&encoded, binary.NativeEndian, filter()) // a buffer takes everything
	return encoded.Bytes()
}

// Load loads the filter into this thread, for the program that it becomes.
func Load() error {
	instructions := filter()
	if instructions == nil {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]} //nolint:gosec // they are few
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

func filter() []unix.SockFilter {
	own, known := map[string]uint32{
		"amd64": unix.AUDIT_ARCH_X86_64,
		"arm64": unix.AUDIT_ARCH_AARCH64,
	}[runtime.GOARCH]
	if !known {
		return nil
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(comparison uint16, value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{
			Code: unix.BPF_JMP | comparison | unix.BPF_K,
			Jt:   yes,
			Jf:   no,
			K:    value,
		}
	}
	answer := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	refuse := func(err unix.Errno) unix.SockFilter { return answer(unix.SECCOMP_RET_ERRNO | uint32(err)) }
	program := []unix.SockFilter{
		load(arch), jump(unix.BPF_JEQ, own, 1, 0), refuse(unix.ENOSYS),
		load(Number), jump(unix.BPF_JGE, x32Calls, 0, 1), refuse(unix.ENOSYS),
	}
	for _, call := range refusedCalls {
		program = append(program, jump(unix.BPF_JEQ, call.number, 0, 1), refuse(call.err))
	}
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		families := uint8(2 * len(sharedSockets)) //nolint:gosec // they are few
		program = append(program, jump(unix.BPF_JEQ, call, 0, families+2), load(Argument))
		for _, family := range sharedSockets {
			program = append(program, jump(unix.BPF_JEQ, family, 0, 1), refuse(unix.EAFNOSUPPORT))
		}
		program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	}
	return append(program, answer(unix.SECCOMP_RET_ALLOW))
}
