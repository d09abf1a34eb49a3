package sandbox

import (
	"errors"
	"os"
	"syscall"
)

// Sockets returns two connected sockets: the first is read with deadlines by us, the second is for
// a program. Unlike a file or a pipe, a socket can neither be truncated nor rewritten nor opened a
// second time through /proc.
func Sockets() (ours, theirs *os.File, err error) {
	// No process may be started between making the sockets and marking them.
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := syscall.SetNonblock(pair[0], true); err != nil {
		return nil, nil, errors.Join(err, syscall.Close(pair[0]), syscall.Close(pair[1]))
	}
	return os.NewFile(uintptr(pair[0]), "output"), os.NewFile(uintptr(pair[1]), "output"), nil
}
