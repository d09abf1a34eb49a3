package mcpserve

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/proc"
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
// If several processes hold it, the caller is unknown.
func loopbackPeer(conn net.Conn) (peer, error) {
	holders, err := proc.ConnectionHolders(conn)
	if err != nil {
		return peer{}, err
	}
	slices.Sort(holders)
	if holders = slices.Compact(holders); len(holders) > 1 {
		return processOf(holders[0]), fmt.Errorf("%d processes share the connection", len(holders))
	}
	return processOf(holders[0]), nil
}

func processOf(pid int) peer {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	_, started := statusOf(pid)
	if err != nil || started == "" {
		return peer{pid: pid, name: "gone"}
	}
	return peer{pid: pid, started: started, name: strings.TrimSpace(string(name))}
}

// ancestor returns the root that is the process or an ancestor of it.
func ancestor(pid int, roots map[int]*peer) (root int, found bool) {
	for pid > 1 {
		if _, found := roots[pid]; found {
			return pid, true
		}
		pid, _ = statusOf(pid)
	}
	return 0, false
}

// statusOf returns a process's parent and when it was started; zero values for a process that has
// ended.
func statusOf(pid int) (parent int, started string) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	// the name may hold anything, brackets too
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return 0, ""
	}
	parent, _ = strconv.Atoi(fields[1]) // 0 is nobody
	return parent, fields[19]
}
