package bridgecli

import "syscall"

// endsWithUs makes the system end a child when this process is killed: the next bridge continues
// its run.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
