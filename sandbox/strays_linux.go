package sandbox

import (
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// RunMarker is the environment variable that marks the processes of one run. Where
// there is no supervisor, orphans are found by it.
const RunMarker = "EVAL_RUN_ID"

// rssUnit is the unit of the kernel's resident set size, in KiB.
const rssUnit = 1

// killStrays kills what is left of a program whose first process has ended: its
// session and process group, processes that carry its marker, those that were known
// before, and all their descendants. It returns how many it killed, and what is still
// alive after all.
func killStrays(program int, env []string, known map[int]bool) (killed int, unkillable []int) {
	marker := lookup(env, RunMarker)
	if marker != "" {
		marker = RunMarker + "=" + marker
	}
	seen := map[int]bool{}
	deadline := time.Now().Add(killDelay / 2)
	for {
		strays := findStrays(program, marker, known)
		if len(strays) == 0 || time.Now().After(deadline) {
			return len(seen), strays
		}
		for _, pid := range strays {
			seen[pid] = true
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond) // let them die before we look again
	}
}

func findStrays(program int, marker string, known map[int]bool) []int {
	ours := map[int]bool{}
	table := processTable()
	for _, p := range table {
		if p.pid == os.Getpid() || p.zombie {
			continue
		}
		inGroup := program != 0 && (p.session == program || p.group == program)
		if inGroup || known[p.pid] || marker != "" && carries(p.pid, marker) {
			ours[p.pid] = true
		}
	}
	for grew := true; grew; {
		grew = false
		for _, p := range table {
			if ours[p.parent] && !ours[p.pid] && !p.zombie {
				ours[p.pid], grew = true, true
			}
		}
	}
	return slices.Collect(maps.Keys(ours))
}

// childProcesses lists the direct children of a process.
func childProcesses(pid int) []int {
	children, _ := childrenOf(pid)
	return children
}
