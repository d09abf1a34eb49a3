package sandbox

import (
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
// knows these: anybody can run our binary under their name.
func (h *holder) left() []int {
	h.starting.Lock()
	defer h.starting.Unlock()
	var found []int
	direct, _ := childrenOf(os.Getpid())
	for _, pid := range direct {
		if _, ours := h.running[pid]; !ours {
			found = append(append(found, pid), descendants(pid)...)
		}
	}
	return found
}

// endLeft kills what programs have left, and returns how many it found.
func (h *holder) endLeft() (int, error) {
	seen := map[int]bool{}
	for began := time.Now(); ; time.Sleep(sweepEvery) {
		left := h.left()
		switch {
		case len(left) == 0:
			return len(seen), nil
		case time.Since(began) > sweepLimit:
			return len(seen), errors.New("processes that were left in the container do not end: " +
				strings.Join(namesOf(left), ", "))
		}
		for _, pid := range left {
			seen[pid] = true
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone, and is looked for again
		}
		h.reap()
	}
}

func (h *holder) answerEndLeft(id int) {
	if _, err := h.endLeft(); err != nil {
		h.fail(id, err)
		return
	}
	h.say(networkReport{ID: id}, -1)
}

// replace does what is left to do for a supervisor that died before its program: what was below it
// is below us now. If that does not end, the container does.
func (h *holder) replace(ended networkReport) {
	var err error
	if ended.Leftovers, err = h.endLeft(); err != nil {
		os.Exit(1)
	}
	h.say(ended, -1)
}

// maxLeft bounds the names of processes that were left.
const maxLeft = 20

// namesOf are the names of processes, as far as they live.
func namesOf(processes []int) []string {
	var names []string
	for _, pid := range processes {
		name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if err == nil {
			names = append(names, display.Line(strings.TrimSpace(string(name))))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxLeft)]
}

// spareThreads is how many threads our processes in a container keep for later.
const spareThreads = 4

// keepThreads has the runtime make threads while there are some to be had: a program may use up all
// that its container has, and the runtime would end us if it needed one then.
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
