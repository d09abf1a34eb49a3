package untrusted

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// How long to wait for whoever has started us to close what it has made for us.
const (
	handOver     = 10 * time.Second
	handOverLast = 20 * time.Millisecond // when it sleeps
)

// inputIsShared reports whether another process may read on from our standard input. If a shell
// may, in a loop for example, then what is in it are the cases of the hook, and not the input of
// one program. Devices, such as /dev/null, hold nothing, and of a file that the program gets from
// its beginning nobody has read a case.
func inputIsShared() bool {
	own, err := os.Stdin.Stat()
	if err != nil {
		return false
	}
	switch own.Mode().Type() {
	case fs.ModeDevice | fs.ModeCharDevice, fs.ModeDevice:
		return false
	case 0:
		at, err := os.Stdin.Seek(0, io.SeekCurrent)
		return err != nil || at != 0
	case fs.ModeNamedPipe:
		shared := heldElsewhere(own)
		if ready := []unix.PollFd{{Events: unix.POLLIN}}; shared {
			_, _ = unix.Poll(ready, 1000)
			if ready[0].Revents&unix.POLLIN != 0 {
				fmt.Fprintf(os.Stderr, "%s: the program got no standard input, because its starter may read on from "+
					"that: write %s %s, or < /dev/null\n", Name, Name, inputFlag)
			}
		}
		return shared
	}
	parents, err := os.Stat(fmt.Sprintf("/proc/%d/fd/0", os.Getppid()))
	return err != nil || os.SameFile(own, parents)
}

// heldElsewhere opens the pipe of standard input once more, in place of what we have been given,
// and reports whether another process has that open. A shell cannot be asked, because its
// descriptors may be closed to us; but an open file leaves the list of an epoll instance with its
// last descriptor.
func heldElsewhere(own fs.FileInfo) bool {
	again, err := unix.Open("/proc/self/fd/0", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(again)
	list, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return true
	}
	defer unix.Close(list)
	closeCopies(own, again)
	_, err = unix.FcntlInt(uintptr(again), unix.F_SETFL, 0)
	if err != nil || unix.EpollCtl(list, unix.EPOLL_CTL_ADD, 0, &unix.EpollEvent{}) != nil ||
		unix.Dup3(again, 0, 0) != nil {
		return true
	}
	asleep := 0
	for until := time.Now().Add(handOver); isListed(list); time.Sleep(time.Millisecond) {
		parent := proc.Stat(strconv.Itoa(os.Getppid()))
		if len(parent) > 0 && parent[0] == "S" {
			asleep++
		}
		if asleep > int(handOverLast/time.Millisecond) || time.Now().After(until) {
			return true
		}
	}
	return false
}

// isListed reports whether an epoll instance lists a file.
func isListed(list int) bool {
	files, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", list))
	return err != nil || strings.Contains(string(files), "tfd:")
}

// closeCopies closes what a shell has left open of a file besides standard input.
func closeCopies(file fs.FileInfo, except int) {
	entries, _ := os.ReadDir("/proc/self/fd") // then nothing is closed
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < 3 || fd == except {
			continue
		}
		if info, err := os.Stat("/proc/self/fd/" + entry.Name()); err == nil && os.SameFile(info, file) {
			_ = unix.Close(fd)
		}
	}
}
