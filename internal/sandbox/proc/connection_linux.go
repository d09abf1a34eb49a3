package proc

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ConnectionHolders returns the processes that hold the other end of a TCP connection on this
// machine's loopback, if we may inspect them.
func ConnectionHolders(conn net.Conn) ([]int, error) {
	ours, ok := conn.LocalAddr().(*net.TCPAddr)
	theirs, both := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !both {
		return nil, errors.New("it is not a TCP connection")
	}
	inode, err := socketInode(theirs, ours)
	if err != nil {
		return nil, err
	}
	var holders []int
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) // it is digits
			holders = append(holders, pid)
		}
	}
	if len(holders) == 0 {
		return nil, errors.New("it hides its open files")
	}
	return holders, nil
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

// kernelAddress returns an IPv4 address as /proc/net/tcp has it: the bytes of a machine word, and
// the port.
func kernelAddress(address *net.TCPAddr) string {
	ip := address.IP.To4()
	if ip == nil {
		return ""
	}
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], address.Port)
}
