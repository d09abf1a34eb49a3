package bwrap

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/internal/first"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// Status reads what bubblewrap reports about the sandbox it makes.
type Status struct {
	ended chan struct{}
	init  atomic.Int64 // process 1 of the sandbox, as we see it; 0: not known yet
}

// NewStatus returns the reader and the file to hand to bubblewrap.
func NewStatus() (*Status, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	s := &Status{ended: make(chan struct{})}
	go s.follow(read)
	return s, write, nil
}

func (s *Status) follow(read *os.File) {
	defer close(s.ended)
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

// Terminate asks the program in the sandbox to end. Bubblewrap itself would die of a
// SIGTERM and take the program with it, without any grace. A program that is about to
// start is asked as soon as it is there.
func (s *Status) Terminate() {
	if s.ask() {
		return
	}
	go func() {
		for {
			select {
			case <-s.ended: // bubblewrap has ended
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
func (s *Status) ask() bool {
	first := s.init.Load()
	if first == 0 {
		return false
	}
	children, _ := proc.Children(int(first))
	if len(children) == 0 {
		return false
	}
	// The group is that of process 1 of the sandbox, which the kernel protects from
	// signals that it has no handler for.
	group, err := unix.Getpgid(children[0])
	return err == nil && unix.Kill(-group, unix.SIGTERM) == nil
}

// IsInit reports, after bubblewrap has ended, whether a process was its own process 1.
func (s *Status) IsInit(pid int) bool {
	if s.init.Load() == 0 { // bubblewrap reported it before the program began; we may not have read it yet
		select {
		case <-s.ended:
		case <-time.After(time.Second): // an escaped process holds the descriptor
		}
	}
	return s.init.Load() == int64(pid)
}

// StartReport reads what package first reports in a sandbox.
type StartReport struct {
	Done chan struct{}
	text []byte
}

// Follow reads until the program has been started, or bubblewrap has ended.
func (s *StartReport) Follow(read *os.File) {
	defer close(s.Done)
	defer read.Close()
	s.text, _ = io.ReadAll(read)
}

// Outcome returns, after bubblewrap has ended, whether the sandbox was made, and why the program
// was not started in it.
func (s *StartReport) Outcome() (made bool, err error) {
	select {
	case <-s.Done: // it ends with the start of the program, or with bubblewrap
	case <-time.After(time.Second):
		return true, nil
	}
	text, made := strings.CutPrefix(string(s.text), first.Started)
	if text == "" {
		return made, nil
	}
	return true, errors.New(text)
}
