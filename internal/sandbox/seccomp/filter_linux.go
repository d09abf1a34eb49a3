package seccomp

import (
	"bytes"
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// refusedCalls are the system calls that no isolated program may make, with the error that each
// returns. They reach into other processes, into the kernel, or into what sandboxes share: keys are
// kept per user and outlive a run. If programs try a call and can do without it, the error says
// that it does not exist.
var refusedCalls = map[uint32]unix.Errno{
	unix.SYS_ADD_KEY:     unix.EPERM,
	unix.SYS_REQUEST_KEY: unix.EPERM,
	unix.SYS_KEYCTL:      unix.EPERM,

	unix.SYS_PTRACE:            unix.EPERM,
	unix.SYS_PROCESS_VM_READV:  unix.EPERM,
	unix.SYS_PROCESS_VM_WRITEV: unix.EPERM,
	unix.SYS_PIDFD_GETFD:       unix.EPERM,

	unix.SYS_BPF:             unix.EPERM,
	unix.SYS_PERF_EVENT_OPEN: unix.EPERM,
	unix.SYS_USERFAULTFD:     unix.EPERM,

	unix.SYS_MOUNT:          unix.EPERM,
	unix.SYS_UMOUNT2:        unix.EPERM,
	unix.SYS_PIVOT_ROOT:     unix.EPERM,
	unix.SYS_OPEN_TREE:      unix.ENOSYS,
	unix.SYS_MOVE_MOUNT:     unix.ENOSYS,
	unix.SYS_FSOPEN:         unix.ENOSYS,
	unix.SYS_FSCONFIG:       unix.ENOSYS,
	unix.SYS_FSMOUNT:        unix.ENOSYS,
	unix.SYS_FSPICK:         unix.ENOSYS,
	unix.SYS_MOUNT_SETATTR:  unix.ENOSYS,
	unix.SYS_OPEN_TREE_ATTR: unix.ENOSYS,
	unix.SYS_SETNS:          unix.EPERM,

	unix.SYS_KEXEC_LOAD:      unix.EPERM,
	unix.SYS_KEXEC_FILE_LOAD: unix.EPERM,
	unix.SYS_INIT_MODULE:     unix.EPERM,
	unix.SYS_FINIT_MODULE:    unix.EPERM,
	unix.SYS_DELETE_MODULE:   unix.EPERM,
	unix.SYS_REBOOT:          unix.EPERM,
	unix.SYS_SWAPON:          unix.EPERM,
	unix.SYS_SWAPOFF:         unix.EPERM,
	unix.SYS_ACCT:            unix.EPERM,
	unix.SYS_SYSLOG:          unix.EPERM,

	unix.SYS_OPEN_BY_HANDLE_AT: unix.EPERM,

	unix.SYS_IO_URING_SETUP:    unix.ENOSYS,
	unix.SYS_IO_URING_ENTER:    unix.ENOSYS,
	unix.SYS_IO_URING_REGISTER: unix.ENOSYS,
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
	for call, err := range refusedCalls {
		program = append(program, jump(unix.BPF_JEQ, call, 0, 1), refuse(err))
	}
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		families := uint8(2 * len(sharedSockets)) //nolint:gosec // they are few
		program = append(program, jump(unix.BPF_JEQ, call, 0, families+2), load(Argument))
		for _, family := range sharedSockets {
			program = append(program, jump(unix.BPF_JEQ, family, 0, 1), refuse(unix.EAFNOSUPPORT))
		}
		program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	var encoded bytes.Buffer
	_ = binary.Write(&encoded, binary.NativeEndian, program) // a buffer takes everything
	return encoded.Bytes()
}
