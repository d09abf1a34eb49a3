//go:build unix && !linux

package untrusted

import (
	"os/exec"
	"syscall"
)

// start starts the program in a new session, which is all that this system offers.
func start(program string, args []string, files Files) (*exec.Cmd, error) {
	cmd := files.command(program, args, &syscall.SysProcAttr{Setsid: true})
	return cmd, cmd.Start()
}

// inputIsShared cannot be known here.
func inputIsShared() bool { return false }

// ends reports whether what a program leaves ends with it.
func ends(*syscall.SysProcAttr) bool { return false }
