//go:build unix && !linux

package sandbox

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// RunMarker is the environment variable that marks the processes of one run. This
// system does not let us search for it.
const RunMarker = "EVAL_RUN_ID"

// rssUnit is the unit of the kernel's resident set size, in KiB.
const rssUnit = 1024

// MaybeReaper must be the first call in main. On this system there is no supervisor,
// so that it has nothing to do.
func MaybeReaper() {}

// strongest is all there is: a process that starts a session of its own escapes it.
func (l Local) containment(launch) (Containment, error) {
	if l.Containment != "" && l.Containment != ProcessGroup {
		return "", errors.New("containment " + string(l.Containment) + " needs Linux; here there are process groups only")
	}
	return ProcessGroup, nil
}

func startTree(_ Containment, job launch) (tree, int, error) { return startGroup(job) }

func descendants(int) []int { return nil }

func childProcesses(int) []int { return nil }

// killStrays kills what is left of the process group.
func killStrays(program int, _ []string, _ map[int]bool) (killed int, survivors []int) {
	deadline := time.Now().Add(killDelay / 2)
	for unix.Kill(-program, unix.SIGKILL) == nil {
		killed = 1
		if time.Now().After(deadline) {
			return killed, []int{program}
		}
		time.Sleep(time.Millisecond)
	}
	return killed, nil
}
