package sandbox

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// bwrapStatus reads what bubblewrap reports about the sandbox it makes.
type bwrapStatus struct {
	done chan struct{}
	init atomic.Int64 // process 1 of the sandbox, as we see it; 0: not known yet
}

// newBwrapStatus returns the reader and the file to hand to bubblewrap.
func newBwrapStatus() (*bwrapStatus, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	s := &bwrapStatus{done: make(chan struct{})}
	go s.follow(read)
	return s, write, nil
}

func (s *bwrapStatus) follow(read *os.File) {
	defer close(s.done)
	defer read.Close()
	decoder := json.NewDecoder(read)
	for {
		var line struct {
			ChildPID int64 `json:"child-pid"`
		}
		if err := decoder.Decode(&line); err != nil {
			return
		}
		if line.ChildPID != 0 {
			s.init.Store(line.ChildPID)
		}
	}
}

// terminateAgain is how long to wait for a program that is not there yet.
const terminateAgain = 10 * time.Millisecond

// terminate asks the program in the sandbox to end. Bubblewrap itself would die of a
// SIGTERM and take the program with it, without any grace. A program that is about to
// start is asked as soon as it is there.
func (s *bwrapStatus) terminate() {
	if s.ask() {
		return
	}
	go func() {
		for {
			select {
			case <-s.done: // bubblewrap has ended
				return
			case <-time.After(terminateAgain):
				if s.ask() {
					return
				}
			}
		}
	}()
}

// ask asks the program to end and reports whether there was one.
func (s *bwrapStatus) ask() bool {
	first := s.init.Load()
	if first == 0 {
		return false
	}
	children, _ := childrenOf(int(first))
	if len(children) == 0 {
		return false
	}
	// The group is that of process 1 of the sandbox, which the kernel protects from
	// signals that it has no handler for.
	group, err := unix.Getpgid(children[0])
	return err == nil && unix.Kill(-group, unix.SIGTERM) == nil
}

// isInit reports, after bubblewrap has ended, whether a process was its own process 1.
func (s *bwrapStatus) isInit(pid int) bool {
	if s.init.Load() == 0 { // bubblewrap reported it before the program began; we may not have read it yet
		select {
		case <-s.done:
		case <-time.After(time.Second): // an escaped process holds the descriptor
		}
	}
	return s.init.Load() == int64(pid)
}
