package mcpserve

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
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

// loopbackPeer finds the process that holds the other end of a TCP connection on this machine. Where
// several do, one that does not belong to the tree is reported.
func loopbackPeer(conn net.Conn, tree *processTree) (peer, error) {
	inode, err := socketInode(conn.RemoteAddr().(*net.TCPAddr), conn.LocalAddr().(*net.TCPAddr))
	if err != nil {
		return peer{}, err
	}
	found := peer{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) // it is digits
		if found = processOf(pid); !tree.has(found) {
			return found, nil
		}
	}
	if found.pid == 0 {
		return peer{}, errors.New("it hides its open files")
	}
	return found, nil
}

// socketInode finds the socket with the given ends in the kernel's table.
func socketInode(local, remote *net.TCPAddr) (string, error) {
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		return "", err
	}
	from, to := kernelAddress(local), kernelAddress(remote)
	for line := range bytes.Lines(table) {
		if fields := strings.Fields(string(line)); len(fields) > 9 && fields[1] == from && fields[2] == to {
			return fields[9], nil
		}
	}
	return "", errors.New("its connection has ended")
}

// kernelAddress is an IPv4 address as /proc/net/tcp has it: the bytes of a machine word, and the
// port.
func kernelAddress(address *net.TCPAddr) string {
	ip := address.IP.To4()
	if ip == nil {
		return ""
	}
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], address.Port)
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
