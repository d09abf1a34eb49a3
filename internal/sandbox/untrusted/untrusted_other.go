//go:build unix && !linux

package untrusted

import (
	"os/exec"
	"syscall"
)

// start starts the program in a new session, which is all that this system offers.
func start(program string, args []string, _ Files) (*exec.Cmd, error) {
	cmd := command(program, args, &syscall.SysProcAttr{Setsid: true})
	return cmd, cmd.Start()
}
