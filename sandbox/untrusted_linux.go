package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// untrustedAttributes are ways to start the program, best first: with a user namespace
// in which it is the same user, with one in which it is nobody, and with none. Root
// without privileges, as in our sandbox, may not take its own number along; it still
// has its files.
func untrustedAttributes() []*syscall.SysProcAttr {
	same := &syscall.SysProcAttr{
		Setsid:      true,
		Pdeathsig:   unix.SIGKILL,
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
	nobody := &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL, Cloneflags: unix.CLONE_NEWUSER}
	together := &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	return []*syscall.SysProcAttr{same, nobody, together}
}

func closeInherited() { closeAllOnExec() }
