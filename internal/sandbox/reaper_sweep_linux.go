package sandbox

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/proc"
)

func (r *reaper) listen() {
	var command [1]byte
	for {
		if _, err := io.ReadFull(r.line, command[:]); err != nil {
			command[0] = commandKill // the harness is dead
			r.commands <- command[0]
			return
		}
		r.commands <- command[0]
	}
}

// waitForChildren reaps everything that ends, orphans included, until no child is
// left. As the parent of all orphans we have no descendant then.
func (r *reaper) waitForChildren() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			r.exits <- exit{}
			return
		default:
			r.exits <- exit{pid: pid, status: status}
		}
	}
}

// supervise runs the supervisor after the start: it follows commands, and when the program has
// ended, or must end, it kills until nothing is left.
func (r *reaper) supervise() {
	r.result.ExitCode = -1
	if r.sweeping {
		r.beginSweep()
	}
	for {
		select {
		case command := <-r.commands:
			if command == commandKill {
				r.beginSweep()
			} else if r.runs {
				r.terminate()
			}
		case <-r.again:
			if time.Since(r.since) > sweepLimit {
				r.result.Unkillable = proc.Descendants(os.Getpid()) // they hang inside the kernel
				return
			}
			r.sweep()
		case e := <-r.exits:
			if e.pid == 0 {
				r.finish()
				return
			}
			r.noteExit(e)
			if !r.runs && r.order.Inside != nil && r.order.Inside.Keep && r.again == nil {
				r.finish() // the first process of the container takes what is left
				return
			}
		}
	}
}

// beginSweep starts killing, which is repeated until nothing is left.
func (r *reaper) beginSweep() {
	if r.again == nil {
		r.sweeping, r.since = true, time.Now()
	}
	r.sweep()
}

// terminate asks the program to end.
func (r *reaper) terminate() {
	if r.bwrap != nil {
		r.bwrap.Terminate()
		return
	}
	_ = unix.Kill(-r.program, unix.SIGTERM)
}

// sweep kills every process below us once. It is called again and again until the
// waiting goroutine has seen the last child.
func (r *reaper) sweep() {
	if r.order.PIDNamespace {
		// As process 1 of the namespace this means everything in it but us, and the
		// kernel does it in one go: nobody can fork away meanwhile.
		_ = unix.Kill(-1, unix.SIGKILL)
	} else {
		for _, pid := range proc.Adopted() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	// The pause begins now, however long that took: what has died must be waited for meanwhile, or
	// every round finds it again.
	r.again = time.After(sweepEvery)
}

// noteExit takes note of a child that ended.
func (r *reaper) noteExit(e exit) {
	switch {
	case e.pid == r.program:
		r.runs = false
		if r.result.ExitCode = e.status.ExitStatus(); e.status.Signaled() {
			r.result.Signal = unix.SignalName(e.status.Signal())
		}
		if r.order.Inside == nil || !r.order.Inside.Keep {
			r.beginSweep()
		}
	case !r.runs && (r.bwrap == nil || !r.bwrap.IsInit(e.pid)):
		// Bubblewrap's own process 1 is not a leftover; what it had below it died with
		// it, uncounted.
		r.result.Leftovers++
	}
}

func (r *reaper) finish() {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err == nil {
		r.result.Usage = usageOf(&used)
	}
	if r.begun != nil {
		made, err := r.begun.Outcome()
		r.result.NoSandbox = r.bwrap != nil && !made && r.result.Signal == "" && r.result.ExitCode != 0
		if err != nil {
			r.result.NoProgram = err.Error()
		}
	}
}
