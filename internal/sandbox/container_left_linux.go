package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// Left names the processes that programs in the container have left running, those of its entry
// point not among them.
func (c *Container) Left(ctx context.Context) ([]string, error) {
	var names []string
	for _, r := range c.running() {
		answer, err := r.network.ask(ctx, networkRequest{Do: networkLeft}, nil, nil)
		if errors.Is(err, errNetworkGone) { // and everything in it
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for processes that were left in the container: %w", err)
		}
		names = append(names, answer.Names...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// EndLeft kills the processes that Left names. It returns an error if some do not die.
func (c *Container) EndLeft(ctx context.Context) error {
	for _, r := range c.running() {
		_, err := r.network.ask(ctx, networkRequest{Do: networkEndLeft}, nil, nil)
		if err != nil && !errors.Is(err, errNetworkGone) {
			return err
		}
	}
	return nil
}

// left lists the processes in a container that are below none of our supervisors. Only the holder
// knows the supervisors: anybody can run our binary under their name.
func (h *holder) left() []int {
	h.starting.Lock()
	defer h.starting.Unlock()
	var found []int
	direct, _ := proc.Children(os.Getpid())
	for _, pid := range direct {
		if _, ours := h.running[pid]; !ours {
			found = append(append(found, pid), proc.Descendants(pid)...)
		}
	}
	return found
}

// endLeft kills what programs have left.
func (h *holder) endLeft() error {
	for began := time.Now(); ; time.Sleep(sweepEvery) {
		left := h.left()
		switch {
		case len(left) == 0:
			return nil
		case time.Since(began) > sweepLimit:
			return errors.New("processes left in the container do not end: " +
				strings.Join(namesOf(left), ", "))
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone; the next pass checks
		}
	}
}

func (h *holder) answerEndLeft(id int) {
	if err := h.endLeft(); err != nil {
		h.fail(id, err)
		return
	}
	h.say(networkReport{ID: id}, -1)
}

// replace finishes the work of a supervisor that died before its program, or could not end
// everything: its descendants are ours now. If they do not end, the container is killed.
func (h *holder) replace(ended networkReport) {
	before := h.killAll()
	if err := h.endLeft(); err != nil {
		os.Exit(1)
	}
	h.starting.Lock()
	ended.Leftovers = h.orphans - before
	h.starting.Unlock()
	ended.Signal = cmp.Or(ended.Signal, unix.SignalName(unix.SIGKILL))
	h.say(ended, -1)
}

// killAll kills everything in the container but us, unless a supervisor runs: the kernel does that
// in one go, while a bomb of thousands of processes keeps us from listing them. It returns how many
// orphans have ended before.
func (h *holder) killAll() int {
	h.starting.Lock()
	defer h.starting.Unlock()
	if os.Getpid() == 1 && len(h.running) == 0 {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	return h.orphans
}

// abort ends a supervisor that does not finish its work, so that replace does it.
func (h *holder) abort(request networkRequest) {
	h.starting.Lock()
	for pid, started := range h.running {
		if started.ID == request.Supervisor {
			started.Sweep = true
			h.running[pid] = started
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	h.starting.Unlock()
	h.say(networkReport{ID: request.ID}, -1)
}

// maxLeft bounds the names of processes that were left.
const maxLeft = 20

// namesOf returns the names of the processes that are alive.
func namesOf(processes []int) []string {
	var names []string
	for _, pid := range processes {
		name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if p, found := proc.Read(pid); err == nil && found && !p.Zombie {
			names = append(names, display.Line(strings.TrimSpace(string(name))))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxLeft)]
}

// spareThreads is how many threads our processes in a container keep for later.
const spareThreads = 4

// keepThreads makes the runtime create threads while it can: a program may use up all that its
// container has, and the runtime would abort if it needed one then.
func keepThreads() {
	var all sync.WaitGroup
	all.Add(spareThreads)
	for range spareThreads {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // the runtime keeps the thread
			all.Done()
			all.Wait()
		}()
	}
	all.Wait()
}
