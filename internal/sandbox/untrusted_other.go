//go:build unix && !linux

package sandbox

import (
	"os/exec"
	"syscall"
)

// startUntrusted starts the program in a new session, which is all that this system offers.
func startUntrusted(program string, args []string) (*exec.Cmd, error) {
	cmd := untrustedCommand(program, args, &syscall.SysProcAttr{Setsid: true})
	return cmd, cmd.Start()
}

// closeAllOnExec marks every descriptor that a hook may have opened.
func closeAllOnExec() {
	const highest = 256
	for fd := 3; fd < highest; fd++ {
		syscall.CloseOnExec(fd)
	}
}
