//go:build unix && !linux

package sandbox

import "syscall"

// untrustedAttributes put the program into a session of its own, which is all there is.
func untrustedAttributes() []*syscall.SysProcAttr { return []*syscall.SysProcAttr{{Setsid: true}} }

// closeInherited marks every descriptor that a hook may have opened.
func closeInherited() {
	const highest = 256
	for fd := 3; fd < highest; fd++ {
		syscall.CloseOnExec(fd)
	}
}
