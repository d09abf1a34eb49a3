package mcpserve

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/sandbox"
)

// socketPeer asks the kernel who opened a Unix socket.
func socketPeer(conn net.Conn) (peer, error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var credentials *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		credentials, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return peer{}, err
	}
	if asked != nil {
		return peer{}, asked
	}
	return processOf(int(credentials.Pid)), nil
}

// loopbackPeer finds the process that holds the other end of a TCP connection on this machine.
// Where several do, one that does not belong to the tree is reported.
func loopbackPeer(conn net.Conn, tree *processTree) (peer, error) {
	holders, err := sandbox.ConnectionHolders(conn)
	if err != nil {
		return peer{}, err
	}
	found := peer{}
	for _, pid := range holders {
		if found = processOf(pid); !tree.has(found) {
			break
		}
	}
	return found, nil
}

func processOf(pid int) peer {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return peer{pid: pid, name: "gone"}
	}
	return peer{pid: pid, name: strings.TrimSpace(string(name))}
}

// descends reports whether a process is one of the roots, or was started by one.
func descends(pid int, roots map[int]bool) bool {
	for pid > 1 {
		if roots[pid] {
			return true
		}
		pid = parentOf(pid)
	}
	return false
}

// parentOf returns 0 for a process that is gone.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// the name may hold anything, brackets too
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1]) // 0 is nobody
	return parent
}
